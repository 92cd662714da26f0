"""Makes Keras's layers run on the kernels, and undoes it."""

import sys
from typing import Any, Dict, Iterator, List, Optional

from blockcell import loader, tf_internals
from blockcell import precision as levels
from blockcell.keras import environment, legacy_keras, scope

_replaced: Dict[Any, Any] = {}  # By the class of Keras: its method, or None, and ours.


class Enabled:
    """What `enable` returns: a context manager, which undoes the call at its end."""

    def __init__(self, before: scope.Scope):
        """Remembers what shall hold at the end."""
        self._before = before

    def __enter__(self) -> None:
        """Does nothing: the kernels are enabled already."""

    def __exit__(self, *exception: Any) -> None:
        """Sets what held before."""
        _set(self._before)


def enable(
    model: Any = None,
    *,
    strict: bool = False,
    weights: Optional[str] = None,
    keep_x: Optional[str] = None,
    precision: Optional[str] = None,
) -> Enabled:
    """Runs Keras's LSTM and GRU layers on blockcell's kernels, forward and backward.

    Without an argument it applies to every `keras.layers.LSTM`, `GRU`, `RNN(LSTMCell)` and
    `RNN(GRUCell)` of the process: new, loaded or existing, alone or in `Bidirectional`.
    Weights, checkpoints and configurations stay Keras's. A recurrent layer that the kernels do not
    support falls back to Keras's own path, and the logger `"blockcell"` says so once per layer.
    `report` returns the path of each layer of a model. `docs/keras.md` lists what is supported.

    Models that have been trained or used before are traced again. Your own `tf.function` keeps the
    path with which it was traced.

    Calls `blockcell.load()`, which also replaces the kernels of TensorFlow's ops. It may be called
    again.

    Args:
      model: A model or a layer: applies only to the layers that it has now.
      strict: Whether to raise an error if the kernels do not support one of these layers.
        A GPU, and graphs that are written into files, do not raise it.
      weights: `"int8"` packs the weights of these layers in int8 in `predict`, `evaluate` and
        functions, `"float32"` does not. By default as `blockcell.load` has set it. With `"int8"`
        their gradients are an error. Eager calls run in float32.
      keep_x: As in `blockcell.load`.
      precision: The precision of the matrix products of these layers in functions, forward and
        backward: a level of `set_float32_matmul_precision`. Eager calls use that of the process.

    Returns:
      A context manager, which may be ignored: `with blockcell.keras.enable():` applies inside.

    Raises:
      RuntimeError: Keras's backend is not TensorFlow, or TensorFlow is older than 2.4.
      LibraryError: As `blockcell.load`.
      ValueError: There is no such value of `weights`, `keep_x` or `precision`.
    """
    if precision is not None:
        levels.check(precision)
    how = scope.How(strict, loader.packed_as(weights, keep_x), precision)
    environment.check()
    loader.load()
    before = scope.get()
    if model is None:
        _set(before._replace(everything=how))
    else:
        _set(before.with_layers(_recurrent(model), how))
    return Enabled(before)


def disable(model: Any = None) -> None:
    """Undoes `enable`: Keras's layers run on Keras's own path again.

    The library stays loaded. Models are traced again, as by `enable`. Layers of
    `blockcell.keras` still run on the kernels. Without `enable` before, nothing happens.

    Args:
      model: Undoes only `enable` with this model; by default all calls of `enable`.
    """
    if scope.get().is_empty():
        return
    _set(scope.Scope() if model is None else scope.get().without_layers(_recurrent(model)))


def enabled(model: Any = None) -> bool:
    """Whether `enable` is on.

    Args:
      model: A model or a layer; by default the whole process. True if it is for each recurrent
        layer that this has.
    """
    if not _replaced:
        return False
    if model is None:
        return scope.get().everything is not None
    return all(scope.get().of(layer) is not None for layer in _recurrent(model))


def served(layer: Any) -> bool:
    """Whether the method of a layer is one that runs on the kernels where it can.

    Args:
      layer: A recurrent layer of Keras.
    """
    name = tf_internals.loop_of_layers()
    if name is None:
        return False
    method = getattr(type(layer), name)
    return method in [ours for _, ours in _replaced.values()] or hasattr(layer, "uses_blockcell")


def _set(after: scope.Scope) -> None:
    """Makes a scope hold, and lets models be traced anew that have a layer of which it changes."""
    before = scope.get()
    if after.is_empty():
        _put_back()
    elif not _put():
        return
    scope.put(after)
    from blockcell.keras import retracing

    retracing.forget(lambda layer: before.of(layer) != after.of(layer))


def _put() -> bool:
    """Puts methods of ours into Keras's classes; whether there is a place for them."""
    import tensorflow as tf

    from blockcell.keras import exports

    method = tf_internals.loop_of_layers()
    if method is None:
        return False
    exports.mark()
    legacy_keras.watch()
    if not _replaced:
        keras = environment.hooks_of_version()
        names = [name for name in keras.OTHERS if hasattr(tf.keras.layers, name)]
        for name in ["LSTM", "GRU", "RNN", *names]:
            layer = getattr(tf.keras.layers, name)
            ours = keras.replacement(getattr(layer, method), of_rnn=name == "RNN")
            _replaced[layer] = (vars(layer).get(method), ours)
            setattr(layer, method, ours)
    return True


def _put_back() -> None:
    from blockcell.keras import exports

    if "blockcell.keras.layers" not in sys.modules:  # These need the marks as well.
        exports.unmark()
    method = tf_internals.loop_of_layers()
    for layer, (stock, ours) in _replaced.items():
        if vars(layer).get(method) is not ours:  # Somebody else has put something there.
            continue
        if stock is None:
            delattr(layer, method)
        else:
            setattr(layer, method, stock)
    _replaced.clear()


def _recurrent(model: Any) -> List[Any]:
    environment.check()
    return list(recurrent_layers(model))


def recurrent_layers(layer: Any, seen: Optional[Dict[int, Any]] = None) -> Iterator[Any]:
    """The recurrent layers within a layer or a model, or itself, in their order, each once.

    Args:
      layer: The layer or model.
      seen: Layers that do not count.
    """
    import tensorflow as tf

    seen = {} if seen is None else seen
    if id(layer) in seen:
        return
    seen[id(layer)] = layer
    if isinstance(layer, tf.keras.layers.RNN) or environment.is_of_tf_keras(layer):
        yield layer
        return
    for inner in tf_internals.inner_layers(layer):
        yield from recurrent_layers(inner, seen)
