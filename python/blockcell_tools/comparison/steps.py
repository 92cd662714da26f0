"""Times the steps of a program from within: Keras's batches, sessions' runs, and functions' calls.

The program is not edited: methods of TensorFlow's and Keras's public classes are replaced by ones
that call them and take the time. What happens inside of a step is no step of its own.
"""

import contextlib
import functools
import inspect
import os
import threading
import time
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import numpy as np

from blockcell import after_import
from blockcell_tools import hosting

MOST_KINDS = 100
"""Kinds of steps that are told apart; later ones are not timed."""
MOST_ELEMENTS = 2**24
"""Of an output that is kept."""
_MOST_NAMES = 3
"""Fetches that the name of a session's step lists."""


class Kind:
    """The steps of one kind."""

    def __init__(self) -> None:
        """Knows of none."""
        self.seconds: List[float] = []
        self.losses: Dict[str, List[float]] = {}
        """What each step returned that is one number, by name."""
        self.outputs: Dict[str, Any] = {}
        """Arrays of floats that the first step returned, by name."""


class Recorder:
    """Notes the steps of this process."""

    def __init__(self, told: Callable[[int], None]) -> None:
        """Notes none yet.

        Args:
          told: Called with the number of steps, after each.
        """
        self.kinds: Dict[str, Kind] = {}
        self._told, self._steps = told, 0
        self._lock = threading.Lock()
        self._inside = threading.local()

    def step(
        self,
        name: str,
        call: Callable[[], Any],
        named: Callable[[Any], Any] = lambda result: result,
    ) -> Any:
        """Makes a call that is a step, unless it is inside of one; returns what it returns.

        Args:
          name: Of the kind of step.
          call: The call.
          named: Gives the parts of a result their names, as keys of a dictionary.
        """
        if self.is_inside():
            return call()
        with self.inside():
            start = time.perf_counter()
            result = call()
            seconds = time.perf_counter() - start
        self.note(name, seconds, named(result))
        return result

    def is_inside(self) -> bool:
        """Whether this thread is inside of a step."""
        return bool(getattr(self._inside, "depth", 0))

    def inside(self) -> "_Inside":
        """A context: what this thread does meanwhile is inside of a step."""
        return _Inside(self._inside)

    def note(self, name: str, seconds: float, result: Any) -> None:
        """Notes a step, and what it returned."""
        with self._lock:
            if name not in self.kinds and len(self.kinds) == MOST_KINDS:
                return
            kind = self.kinds.setdefault(name, Kind())
            for path, value in _numbers(result):
                if value.shape == ():
                    kind.losses.setdefault(path, []).append(float(value))
                elif not kind.seconds and value.size <= MOST_ELEMENTS:
                    kind.outputs[path] = value.copy()
            kind.seconds.append(seconds)
            self._steps += 1
            self._told(self._steps)


class _Inside:
    def __init__(self, local: Any) -> None:
        self._local = local

    def __enter__(self) -> None:
        self._local.depth = getattr(self._local, "depth", 0) + 1

    def __exit__(self, *exception: Any) -> None:
        self._local.depth -= 1


def _numbers(result: Any, path: str = "") -> Iterator[Tuple[str, Any]]:
    """The floats in a result, with their places in it, as arrays."""
    if isinstance(result, dict):
        for key, value in result.items():
            yield from _numbers(value, f"{path}.{key}" if path else str(key))
    elif isinstance(result, (list, tuple)):
        for number, value in enumerate(result):
            yield from _numbers(value, f"{path}[{number}]")
    elif isinstance(result, (float, np.ndarray, np.generic)) or _is_eager_tensor(result):
        value = np.asarray(result)
        if value.dtype.kind == "f":
            yield path or "result", value


def _is_eager_tensor(value: Any) -> bool:
    # Of a ragged or sparse tensor there is no array.
    return callable(getattr(value, "numpy", None)) and getattr(value, "shape", None) is not None


def watch(recorder: Recorder) -> None:
    """Times the steps of what this process does from now on, as soon as it imports TensorFlow."""
    after_import.call(lambda: _watch_tensorflow(recorder), "tensorflow")
    after_import.call(lambda: _watch_keras(recorder), *hosting.modules_of_keras())


def _watch_tensorflow(recorder: Recorder) -> None:
    import tensorflow as tf

    for session in (tf.compat.v1.Session, tf.compat.v1.InteractiveSession):
        _replace(session, "run", _of_session(recorder))
    if not tf.__version__.startswith("1."):
        _replace(type(tf.function(lambda: None)), "__call__", _of_function(recorder, tf))


def _replace(owner: Any, name: str, around: Callable[[Any, Any, Any, Any], Any]) -> None:
    """Puts a function around a method: it gets the method, the object, and its arguments."""
    method = getattr(owner, name, None)
    if method is None:
        return

    @functools.wraps(method)
    def replacement(self: Any, *args: Any, **kwargs: Any) -> Any:
        return around(method, self, args, kwargs)

    setattr(owner, name, replacement)


def _of_session(recorder: Recorder) -> Callable[[Any, Any, Any, Any], Any]:
    def run(method: Any, session: Any, args: Any, kwargs: Any) -> Any:
        fetches = args[0] if args else kwargs.get("fetches")
        names = list(_names(fetches))
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        name = f"Session.run of {', '.join(names[:_MOST_NAMES])}{more}"

        def named(result: Any) -> Any:
            flat = isinstance(fetches, (list, tuple)) and len(fetches) == len(names)
            return dict(zip(names, result)) if flat else result

        return recorder.step(name, lambda: method(session, *args, **kwargs), named)

    return run


def _names(fetches: Any) -> Iterator[str]:
    """The names of what a session is asked for."""
    if isinstance(fetches, dict):
        fetches = list(fetches.values())
    if isinstance(fetches, (list, tuple)):
        for one in fetches:
            yield from _names(one)
    else:
        yield str(getattr(fetches, "name", fetches))


def _of_function(recorder: Recorder, tf: Any) -> Callable[[Any, Any, Any, Any], Any]:
    def call(method: Any, function: Any, args: Any, kwargs: Any) -> Any:
        if not tf.executing_eagerly():  # It becomes a part of another graph.
            return method(function, *args, **kwargs)
        inner = getattr(function, "python_function", function)
        name = f"{getattr(inner, '__name__', 'function')} (tf.function)"
        return recorder.step(name, lambda: method(function, *args, **kwargs))

    return call


# Keras.

_LOOPS = ("fit", "evaluate", "predict")
_SINGLE = ("train_on_batch", "test_on_batch", "predict_on_batch")


def _watch_keras(recorder: Recorder) -> None:
    import tensorflow as tf

    model = getattr(getattr(tf, "keras", None), "Model", None)
    if model is None:
        return
    for name in _LOOPS:
        _replace(model, name, _of_loop(recorder, name, _timer(recorder, tf)))
    for name in _SINGLE:
        _replace(model, name, _of_single(recorder, name))


def _of_single(recorder: Recorder, name: str) -> Callable[[Any, Any, Any, Any], Any]:
    return lambda method, model, args, kwargs: recorder.step(
        name, lambda: method(model, *args, **kwargs)
    )


def _of_loop(recorder: Recorder, name: str, timer: Any) -> Callable[[Any, Any, Any, Any], Any]:
    """Gives a loop over batches one more callback, which times them."""

    def loop(method: Any, model: Any, args: Any, kwargs: Any) -> Any:
        bound = inspect.signature(method).bind(model, *args, **kwargs)
        callbacks = bound.arguments.get("callbacks") or []
        # What is no list is Keras's own, when one loop calls another.
        if recorder.is_inside() or not isinstance(callbacks, (list, tuple)):
            return method(model, *args, **kwargs)
        bound.arguments["callbacks"] = [*callbacks, timer()]
        with recorder.inside():
            result = method(*bound.args, **bound.kwargs)
        if name == "predict":
            recorder.kinds.setdefault("predict, a batch", Kind()).outputs.update(
                {path: value for path, value in _numbers(result) if value.size <= MOST_ELEMENTS}
            )
        return result

    return loop


def _timer(recorder: Recorder, tf: Any) -> Any:
    """The class of the callback."""

    class Timer(tf.keras.callbacks.Callback):
        """Times batches from their beginning to their end."""

        def __init__(self) -> None:
            super().__init__()
            self._start: Dict[str, float] = {}

        def _begin(self, name: str) -> None:
            self._start[name] = time.perf_counter()

        def _end(self, name: str, logs: Optional[Dict[str, Any]]) -> None:
            seconds = time.perf_counter() - self._start.pop(name, time.perf_counter())
            numbers = {} if name == "predict" else dict(logs or {})
            for other in ("batch", "size", "outputs"):  # Keras of TensorFlow 1.15 has these, too.
                numbers.pop(other, None)
            losses = {key: float(value) for key, value in numbers.items() if np.ndim(value) == 0}
            recorder.note(f"{name}, a batch", seconds, losses)

        def on_train_batch_begin(self, batch: Any, logs: Any = None) -> None:
            self._begin("fit")

        def on_train_batch_end(self, batch: Any, logs: Any = None) -> None:
            self._end("fit", logs)

        def on_test_batch_begin(self, batch: Any, logs: Any = None) -> None:
            self._begin("evaluate")

        def on_test_batch_end(self, batch: Any, logs: Any = None) -> None:
            self._end("evaluate", logs)

        def on_predict_batch_begin(self, batch: Any, logs: Any = None) -> None:
            self._begin("predict")

        def on_predict_batch_end(self, batch: Any, logs: Any = None) -> None:
            self._end("predict", logs)

    return Timer


def telling(pipe: Optional[int]) -> Callable[[int], None]:
    """A function for `Recorder` that writes the number of steps into a pipe, now and then."""
    last = [0.0]

    def tell(steps: int) -> None:
        now = time.perf_counter()
        if pipe is not None and now - last[0] > 0.1:
            last[0] = now
            # Where nobody reads, a bar is no reason to wait.
            with contextlib.suppress(BlockingIOError, BrokenPipeError):
                os.write(pipe, f"{steps}\n".encode())

    return tell
