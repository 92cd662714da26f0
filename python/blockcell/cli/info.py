"""`blockcell info`."""

import sys

import click

from blockcell import loader
from blockcell.cli.console import (
    CommandError,
    import_tensorflow,
    new_console,
    quiet_tensorflow,
    table,
    waiting,
)
from blockcell.cli.options import json_option, report_option, write_json
from blockcell.version import __version__
from blockcell_tools.bench import machine

_WORDS = (
    ("version", "blockcell"),
    ("tensorflow_running", "TensorFlow"),
    ("library", "library"),
    ("tensorflow_built_for", "built for TensorFlow"),
    ("isa", "instruction set"),
    ("float32_matmul_precision", "precision of products"),
    ("float32_matmul_runs", "precision that runs"),
    ("override", "stock kernels are taken over by"),
    ("taken_over", "ops taken over"),
    ("ops", "ops with a kernel"),
    ("machine", "machine"),
)


@click.command("info")
@json_option
@report_option
def command(as_json, report):
    """Show the library for this Python's TensorFlow, its ops, and the machine.

    Loads the library into this process. The exit code is 2 if there is none.
    """
    quiet_tensorflow()
    console = new_console(as_json)
    with waiting(console, "loading the library"):
        answer = dict(_ask(), machine=machine.describe())
    lines = [[words, _text(answer[key])] for key, words in _WORDS]
    console.print(table(None, ("what", "value"), lines, 2))
    write_json(answer, as_json, report)
    if answer["problem"]:
        print(answer["problem"], file=sys.stderr)
        sys.exit(2)


def _ask():
    import blockcell

    try:
        import_tensorflow()
    except CommandError as error:
        return _without_tensorflow(f"blockcell: {error}")
    if not blockcell.info()["problem"]:
        blockcell.load()
    return blockcell.info()


def _without_tensorflow(problem):
    """What is known where TensorFlow cannot be imported, with the keys of `blockcell.info`."""
    answer = dict.fromkeys((*dict(_WORDS), *loader.KNOWN_WHEN_LOADED))
    return dict(answer, loaded=False, version=__version__, problem=problem)


def _text(value):
    if isinstance(value, list):
        return ", ".join(value) or "none"
    if isinstance(value, dict):
        return machine.in_words(value)
    return "-" if value is None else str(value)
