"""Knows why Keras or TensorFlow traces a model: in order to write it into a file, or to infer.

Such a file has a graph: a SavedModel, or what `model.export` makes of one. A graph with the
library's own ops could not be loaded without the library, so it gets Keras's own path, unless the
program has asked for these ops. What Keras's own methods trace in order to infer gets into no file;
a function of a program's may.
"""

import contextlib
import functools
import threading
from typing import Any, Callable, ContextManager, Iterator, List, Tuple

import tensorflow as tf

from blockcell import tf_internals


class PerThread(threading.local):
    """A value that each thread has for itself."""

    def __init__(self, value: Any) -> None:
        """Sets what it is in every thread in the beginning."""
        self.value = value

    @contextlib.contextmanager
    def being(self, value: Any) -> Iterator[None]:
        """It is another one meanwhile."""
        before, self.value = self.value, value
        try:
            yield
        finally:
            self.value = before


_exporting = PerThread(False)
_inferring = PerThread(False)
_for_kernels = PerThread(False)
_marked: List[Tuple[Any, str, Any]] = []  # The class, the method's name, the method of Keras.


def traced_for_a_file() -> bool:
    """Whether what is being traced now will be written into a file, for programs of any kind."""
    if writes_for_kernels():
        return False
    if _exporting.value:
        return True
    return not tf.executing_eagerly() and bool(tf_internals.in_save_context())


def writes_for_kernels() -> bool:
    """Whether a file is being written for programs that load the library."""
    return bool(_for_kernels.value)


def on_kernels() -> ContextManager[None]:
    """Files that are written meanwhile are for programs that load the library."""
    return _for_kernels.being(True)


def gets_into_no_file() -> bool:
    """Whether what a model computes now infers, and cannot be written into a file later."""
    if _exporting.value or _for_kernels.value:
        return False
    return tf.executing_eagerly() or bool(_inferring.value)


def mark() -> None:
    """Lets Keras's methods that export models, or infer, say so while they run. Idempotent."""
    if _marked:
        return
    for flag, methods in ((_exporting, _exporting_methods()), (_inferring, _inferring_methods())):
        for owner, name in methods:
            _marked.append((owner, name, getattr(owner, name)))
            setattr(owner, name, _marking(getattr(owner, name), flag))


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


def _inferring_methods() -> Iterator[Tuple[Any, str]]:
    for name in ("predict", "predict_on_batch", "evaluate", "test_on_batch"):
        yield tf.keras.Model, name


def _marking(method: Callable[..., Any], flag: PerThread) -> Callable[..., Any]:
    @functools.wraps(method)
    def marked(*args: Any, **kwargs: Any) -> Any:
        with flag.being(True):
            return method(*args, **kwargs)

    return marked
