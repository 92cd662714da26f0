"""Puts the gradients into TensorFlow."""

import contextlib
import functools
import importlib
from typing import Any, Callable, Dict, Set

import tensorflow as tf

from blockcell import tf_internals
from blockcell.gradients import products, rules
from blockcell.op_table import GRADIENT_OF

_ours: Set[str] = set()  # Ops whose gradients were ours at some time.
_withdrawn: Set[str] = set()  # Ops whose gradients a user registered after ours.


def register(module: Any, replace: bool) -> None:
    """Registers the gradients of the family, for eager tapes, functions and graphs alike.

    The gradient of a gradient op goes in together with that of its op only: where another one
    stays, it might drop gradients that arrive at the saved activations, and second derivatives
    would be wrong without a word. What a user registers afterwards takes the place of ours.

    Args:
      module: The library's ops, as `tf.load_op_library` returns them.
      replace: Whether to replace gradients that are registered already.

    """
    if tf.__version__.startswith("1."):
        _import_contrib_gradients()
    gradients = _gradients(module)
    for op in rules.RULES:
        if _put(op, gradients[op], replace):
            _put(GRADIENT_OF[op], gradients[GRADIENT_OF[op]], replace)
    for op, gradient in products.GRADIENTS.items():
        _put(op, gradient, replace)
    _step_aside_for_users(gradients)


@functools.lru_cache(maxsize=None)
def _gradients(module: Any) -> Dict[str, rules.Gradient]:
    """The gradients of the forward ops and of their gradient ops, by the op."""
    gradients = {op: rules.first_order(module, op) for op in rules.RULES}
    gradients.update((GRADIENT_OF[op], rules.second_order(op)) for op in rules.RULES)
    return gradients


def _put(op: str, gradient: Callable[..., Any], replace: bool) -> bool:
    """Registers one gradient, and returns whether it is registered then.

    TensorFlow can register a gradient, but not replace one. So it is registered under another name,
    and then moved, in one step for whoever looks gradients up meanwhile.
    """
    registry = tf_internals.gradient_registry()
    if registry is None:
        return _register(op, gradient)
    entries = registry._registry
    if op in entries:
        registered = registry.lookup(op)
        if registered is gradient or not replace or op in _withdrawn:
            return bool(registered is gradient)
    another_name = "Blockcell" + op
    tf.RegisterGradient(another_name)(gradient)
    entries[op] = entries.pop(another_name)
    _ours.add(op)
    return True


def _register(op: str, gradient: Callable[..., Any]) -> bool:
    """Registers one gradient if there is none, and returns whether ours is registered then."""
    if op not in _ours:
        with contextlib.suppress(KeyError):  # There is one.
            tf.RegisterGradient(op)(gradient)
            _ours.add(op)
    return op in _ours


def has(op: str) -> bool:
    """Whether the gradient of an op was ours once. Only a program's own may have replaced it."""
    return op in _ours


def _step_aside_for_users(gradients: Dict[str, rules.Gradient]) -> None:
    """Lets `tf.RegisterGradient` succeed for names that are ours: our gradient makes way.

    TensorFlow's registry refuses a name that it has. It has no hook, so it becomes an instance of a
    subclass, which does the same for all other names. Where that is impossible, users get
    TensorFlow's `KeyError`.
    """
    registry = tf_internals.gradient_registry()
    if registry is None or hasattr(registry, "withdraws_ours"):
        return
    stock: Any = type(registry)

    class Registry(stock):
        __slots__ = ()
        withdraws_ours = True

        def register(self, candidate: Any, name: Any = None) -> Any:
            registered: str = name or candidate.__name__
            for op in (registered, GRADIENT_OF.get(registered, registered)):
                ours = gradients.get(op)
                if ours and op in self._registry and self.lookup(op) is ours:
                    del self._registry[op]
                    _withdrawn.add(op)
            return stock.register(self, candidate, name)

    with contextlib.suppress(TypeError):  # A registry of another layout.
        registry.__class__ = Registry


def _import_contrib_gradients() -> None:
    """Lets tf.contrib register its gradients of the two cells.

    tf.contrib is imported on first use, and would then take the place of ours.
    """
    for module in ("gru_ops", "lstm_ops"):
        with contextlib.suppress(ImportError):  # A TensorFlow built without contrib.
            importlib.import_module("tensorflow.contrib.rnn.python.ops." + module)
