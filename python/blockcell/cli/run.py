"""`blockcell run`."""

import importlib.util
import json
import logging
import runpy
import sys
from pathlib import Path

import click

from blockcell.cli.console import CommandError, writing
from blockcell.cli.options import choose_precision, precision_option


@click.command(
    "run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
@click.option("--report", metavar="FILE", help="Write what ran on the kernels, as JSON.")
@click.option("--keras/--no-keras", default=True, help="Switch Keras's layers on (default: yes).")
@precision_option
@click.option("-m", "is_module", is_flag=True, help="SCRIPT is the name of a module.")
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(report, keras, precision, is_module, script, arguments):
    """Run a Python program with the library loaded and Keras's layers on its kernels.

    The program needs no edit. As soon as it has imported TensorFlow, the library is loaded, and as
    soon as it has imported Keras, blockcell.keras.enable() is called. At its end, what ran on the
    kernels is printed to the standard error. The exit code is the program's.
    """
    if not is_module and not Path(script).exists():
        raise CommandError(f"there is no file {script}")
    said = _collect_log()
    _prepare(keras, precision)
    sys.argv = [script, *arguments]
    try:
        if is_module:
            sys.path.insert(0, "")
            runpy.run_module(script, run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(0, str(Path(script).resolve().parent))
            runpy.run_path(script, run_name="__main__")
    finally:
        found = _found(said)
        _print(found)
        is_written = not report or _is_written(report, found)
    if not is_written:
        sys.exit(2)


def _is_written(report, found):
    """Writes the report. If it cannot, it says why: an error of the program itself goes on."""
    try:
        with writing(report):
            Path(report).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    except CommandError as error:
        print(f"blockcell: {error}", file=sys.stderr)
        return False
    return True


def _prepare(keras, precision):
    """Has everything switched on at the program's own imports, not before."""
    from blockcell import after_import

    after_import.call(lambda: _load(precision), "tensorflow")
    if keras:
        # TensorFlow before 2.6 has its Keras within, and later ones may import the other.
        has_keras = importlib.util.find_spec("keras") is not None
        after_import.call(_enable, "tensorflow", *(["keras"] if has_keras else []))


def _load(precision):
    import blockcell

    try:
        blockcell.load()
        choose_precision(precision)
    except blockcell.LibraryError as error:
        print(error, file=sys.stderr)
        sys.exit(2)


def _enable():
    import blockcell

    try:
        blockcell.keras.enable()
    except RuntimeError as error:  # Another backend, or TensorFlow 1.
        print(f"blockcell: Keras's layers stay as they are: {error}", file=sys.stderr)


def _collect_log():
    """A list that grows by what the package logs."""
    messages = []
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())
    logging.getLogger("blockcell").addHandler(handler)
    return messages


def _found(said):
    """What ran, as far as this process knows."""
    import blockcell

    if "tensorflow" not in sys.modules:
        return {"loaded": False, "runs": {}, "rewritten": {}, "layers": {}, "said": said}
    info = blockcell.info()
    layers = {}
    if "blockcell.keras.run_counts" in sys.modules:
        layers = sys.modules["blockcell.keras.run_counts"].of_all()
    return {
        "loaded": info["loaded"],
        "library": info["library"],
        "float32_matmul_precision": info["float32_matmul_precision"],
        "float32_matmul_runs": info["float32_matmul_runs"],
        "runs": {op: count for op, count in (info["runs"] or {}).items() if count},
        "rewritten": {op: count for op, count in (info["rewritten"] or {}).items() if count},
        "layers": layers,
        "said": said,
    }


def _print(found):
    """One line for each kind of thing, to the standard error."""
    parts = (
        ("calls of kernels", found["runs"]),
        ("nodes put into graphs", found["rewritten"]),
        ("runs of Keras's layers on the kernels", found["layers"]),
    )
    for words, counts in parts:
        text = ", ".join(f"{name} {count:,}" for name, count in counts.items())
        print(f"blockcell: {words}: {text or 'none'}", file=sys.stderr)
    level, runs = (found.get("float32_matmul_" + key) for key in ("precision", "runs"))
    if level not in (None, "highest"):
        print(f"blockcell: precision of products: {level}, runs as {runs}", file=sys.stderr)
    for message in found["said"]:
        print(f"blockcell: {message}", file=sys.stderr)
