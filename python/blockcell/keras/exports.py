"""Knows when Keras or TensorFlow traces a model in order to write it into a file.

Such a file has a graph: a SavedModel, or what `model.export` makes of one. A graph with the
library's own ops could not be loaded without the library, so it gets Keras's own path, unless the
program has asked for these ops.
"""

import contextlib
import functools
import threading
from typing import Any, Callable, Iterator, List, Tuple

import tensorflow as tf

from blockcell import tf_internals

_state = threading.local()
_marked: List[Tuple[Any, str, Any]] = []  # The class, the method's name, the method of Keras.


def traced_for_a_file() -> bool:
    """Whether what is being traced now will be written into a file, for programs of any kind."""
    if writes_for_kernels():
        return False
    if getattr(_state, "depth", 0):
        return True
    return not tf.executing_eagerly() and bool(tf_internals.in_save_context())


def writes_for_kernels() -> bool:
    """Whether a file is being written for programs that load the library."""
    return bool(getattr(_state, "on_kernels", False))


@contextlib.contextmanager
def on_kernels() -> Iterator[None]:
    """Files that are written meanwhile are for programs that load the library."""
    before = getattr(_state, "on_kernels", False)
    _state.on_kernels = True
    try:
        yield
    finally:
        _state.on_kernels = before


def mark() -> None:
    """Lets Keras's methods that export models say so while they run. Idempotent."""
    if _marked:
        return
    for owner, name in _exporting_methods():
        _marked.append((owner, name, getattr(owner, name)))
        setattr(owner, name, _marking(getattr(owner, name)))


def unmark() -> None:
    """Puts back Keras's methods."""
    for owner, name, method in _marked:
        setattr(owner, name, method)
    _marked.clear()


def _exporting_methods() -> Iterator[Tuple[Any, str]]:
    archive = getattr(getattr(tf.keras, "export", None), "ExportArchive", None)
    for owner, names in ((tf.keras.Model, ["export"]), (archive, ["add_endpoint", "write_out"])):
        for name in names:
            if hasattr(owner, name):  # Keras 2.4 to 2.12 have none.
                yield owner, name


def _marking(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def marked(*args: Any, **kwargs: Any) -> Any:
        _state.depth = getattr(_state, "depth", 0) + 1
        try:
            return method(*args, **kwargs)
        finally:
            _state.depth -= 1

    return marked
