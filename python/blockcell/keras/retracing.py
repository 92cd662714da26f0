"""Functions that Keras's models have traced."""

import gc
from typing import Any, Callable, Iterator

import tensorflow as tf

from blockcell.keras import hooks

_FUNCTIONS = ("train", "test", "predict")


def forget(concerns: Callable[[Any], bool]) -> None:
    """Makes models trace their functions anew, when they are next called.

    A model keeps the functions that `fit`, `evaluate` and `predict` call.

    Args:
      concerns: Whether a recurrent layer makes the models that have it be traced anew.
    """
    # Keras has no list of its models.
    kinds = set(_with_subclasses(tf.keras.Model))
    for model in [thing for thing in gc.get_objects() if type(thing) in kinds]:
        if _has(model, concerns):
            for name in _FUNCTIONS:
                _make_again(model, name)


def _with_subclasses(kind: Any) -> Iterator[Any]:
    yield kind
    for subclass in type.__subclasses__(kind):
        yield from _with_subclasses(subclass)


def _has(model: Any, concerns: Callable[[Any], bool]) -> bool:
    try:
        return any(map(concerns, hooks.recurrent_layers(model)))
    except RuntimeError:  # A model whose __init__ has not called Keras's yet.
        return False


def _make_again(model: Any, name: str) -> None:
    """Replaces a function that a model has made, at once: `fit` may be running."""
    attribute = name + "_function"
    if getattr(model, attribute, None) is not None:
        setattr(model, attribute, None)
        made = getattr(model, f"make_{attribute}")()
        if getattr(model, attribute) is None:  # A method of the model's own may only return it.
            setattr(model, attribute, made)
