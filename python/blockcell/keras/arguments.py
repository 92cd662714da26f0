"""The arguments of Keras's recurrent layers and cells that the kernels are known to serve.

An argument that is not in these lists may change what a layer computes. Where a layer has one with
another value than its default, Keras's own path runs. So a new release of Keras never has an
argument ignored. `reasons` checks the values of those that matter.
"""

import functools
import inspect
from typing import Any, Dict, Optional

_LAYER = (
    # Those of every layer: what it is called, and what it computes in.
    *("name", "dtype", "trainable", "dynamic", "autocast", "activity_regularizer"),
    *("input_shape", "batch_input_shape", "batch_size", "input_dim", "input_length", "weights"),
)
_LOOP = (
    *("cell", "return_sequences", "return_state", "go_backwards", "stateful", "unroll"),
    *("time_major", "zero_output_for_mask", "use_cudnn", "return_runtime"),
)
_CELL = (
    *("units", "activation", "recurrent_activation", "use_bias", "dropout", "recurrent_dropout"),
    *("kernel_initializer", "recurrent_initializer", "bias_initializer", "unit_forget_bias"),
    *("kernel_regularizer", "recurrent_regularizer", "bias_regularizer"),
    *("kernel_constraint", "recurrent_constraint", "bias_constraint"),
    *("reset_after", "implementation", "seed"),
    # Where the random numbers of dropout come from, which Keras itself applies.
    *("force_generator", "rng_type"),
)
KNOWN = frozenset((*_LAYER, *_LOOP, *_CELL))
_MISSING = object()


def unknown(layer: Any) -> Optional[str]:
    """Why a layer is not served: an argument that is not known; None if there is none.

    Args:
      layer: A layer that is an LSTM, a GRU or an RNN around a cell of these.
    """
    for owner in (layer, layer.cell):
        for name, default in _new_arguments(owner.__class__).items():
            value = getattr(owner, name, getattr(owner, "_" + name, _MISSING))
            if value is _MISSING:
                return f"its argument {name} is new, and its value is not known"
            if not _is_same(value, default):
                return f"its argument {name} is new, and {value!r} is not its default"
    return None


@functools.lru_cache(maxsize=None)
def _new_arguments(kind: Any) -> Dict[str, Any]:
    """Those of a class of Keras and its bases that are not known, with their defaults.

    Arguments of a program's own classes are their own matter: what they change, they compute.
    """
    found = {}
    for owner in kind.__mro__:
        if not _is_kerass(owner) or "__init__" not in vars(owner):
            continue
        for parameter in list(inspect.signature(owner.__init__).parameters.values())[1:]:
            is_named = parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
            if is_named and parameter.name not in KNOWN:
                found[parameter.name] = parameter.default
    return found


def _is_kerass(kind: Any) -> bool:
    """Whether a class is one of Keras's, and one of its layers or of what these are made of."""
    return kind.__module__.split(".")[0] in ("keras", "tensorflow", "tf_keras")


def _is_same(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and bool(value == default))
