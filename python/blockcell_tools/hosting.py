"""Runs a Python program in this process, and tells what of it ran on the kernels.

The program behaves as under `python`: its output, errors and exit code are its own.
"""

import importlib.util
import logging
import runpy
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence


class Program(NamedTuple):
    """A program, as the command line names it."""

    name: str
    """Its file, or the module's name."""
    arguments: Sequence[str]
    is_module: bool = False


def execute(program: Program) -> None:
    """Runs it. What it raises is raised, with a traceback that begins at the program."""
    sys.argv = [program.name, *program.arguments]
    _hide_frames()
    if program.is_module:
        sys.path.insert(0, "")
        runpy.run_module(program.name, run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, str(Path(program.name).resolve().parent))
        runpy.run_path(program.name, run_name="__main__")


def _hide_frames() -> None:
    """Keeps the callers of the program, which are ours, out of printed tracebacks."""
    show = sys.excepthook

    def show_from_program(kind: Any, error: Any, traceback: Any) -> None:
        left = _after_execute(traceback)
        show(kind, error.with_traceback(left), left)

    sys.excepthook = show_from_program


def _after_execute(traceback: Any) -> Any:
    """The part of a traceback that is the program's."""
    left, one = traceback, traceback
    while one is not None:
        if one.tb_frame.f_code is execute.__code__:
            left = one.tb_next
            while left is not None and left.tb_frame.f_globals.get("__name__") == "runpy":
                left = left.tb_next
            return left
        one = one.tb_next
    return left


def prepare(keras: bool, precision: Optional[str], library: Optional[str] = None) -> None:
    """Has everything switched on at the program's own imports, not before.

    Args:
      keras: Whether to call `blockcell.keras.enable()`.
      precision: The level of `blockcell.set_float32_matmul_precision`, or None.
      library: The library's file, or None.
    """
    from blockcell import after_import

    after_import.call(lambda: _load(precision, library), "tensorflow")
    if keras:
        after_import.call(_enable, *modules_of_keras())


def modules_of_keras() -> List[str]:
    """The modules after whose import Keras is there, as `tf.keras`."""
    # TensorFlow before 2.6 has its Keras within, and later ones may import the other.
    has_keras = importlib.util.find_spec("keras") is not None
    return ["tensorflow", *(["keras"] if has_keras else [])]


def _load(precision: Optional[str], library: Optional[str]) -> None:
    import blockcell

    try:
        blockcell.load(library)
        if precision is not None:
            blockcell.set_float32_matmul_precision(precision)
    except blockcell.LibraryError as error:
        print(error, file=sys.stderr)
        sys.exit(2)


def _enable() -> None:
    import blockcell

    try:
        blockcell.keras.enable()
    except RuntimeError as error:  # Another backend, or TensorFlow 1.
        print(f"blockcell: Keras's layers are not changed: {error}", file=sys.stderr)


def collect_log() -> List[str]:
    """A list that grows by what the package logs."""
    messages: List[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("blockcell").addHandler(handler)
    return messages


def found(said: Sequence[str]) -> Dict[str, Any]:
    """What ran on the kernels, as far as this process knows.

    Args:
      said: The list of `collect_log`.
    """
    import blockcell

    nothing: Dict[str, Any] = {"loaded": False, "library": None}
    nothing.update(float32_matmul_precision=None, float32_matmul_runs=None)
    nothing.update(runs={}, rewritten={}, layers={}, said=list(said))
    if "tensorflow" not in sys.modules:
        return nothing
    info = blockcell.info()
    layers = {}
    if "blockcell.keras.run_counts" in sys.modules:
        layers = sys.modules["blockcell.keras.run_counts"].of_all()
    return {
        **nothing,
        **{key: info[key] for key in ("loaded", "library")},
        **{key: info[key] for key in ("float32_matmul_precision", "float32_matmul_runs")},
        "runs": _above_0(info["runs"]),
        "rewritten": _above_0(info["rewritten"]),
        "layers": layers,
    }


def _above_0(counts: Optional[Dict[str, int]]) -> Dict[str, int]:
    return {name: count for name, count in (counts or {}).items() if count}


def lines(ran: Dict[str, Any]) -> Iterator[str]:
    """What `found` returned, in words, a line for each kind of thing."""
    parts = (
        ("calls of kernels", ran["runs"]),
        ("nodes put into graphs", ran["rewritten"]),
        ("runs of Keras's layers on the kernels", ran["layers"]),
    )
    for words, counts in parts:
        text = ", ".join(f"{name} {count:,}" for name, count in counts.items())
        yield f"{words}: {text or 'none'}"
    level, runs = (ran["float32_matmul_" + key] for key in ("precision", "runs"))
    if level not in (None, "highest"):
        yield f"precision of products: {level}, runs as {runs}"
    yield from ran["said"]
