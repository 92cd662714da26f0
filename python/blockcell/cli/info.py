"""`blockcell info`."""

import json
import sys

import click

from blockcell.cli.console import (
    import_tensorflow,
    new_console,
    quiet_tensorflow,
    table,
    waiting,
)

_WORDS = (
    ("version", "blockcell"),
    ("tensorflow_running", "TensorFlow"),
    ("library", "library"),
    ("tensorflow_built_for", "built for TensorFlow"),
    ("isa", "instruction set"),
    ("float32_matmul_precision", "precision of products"),
    ("float32_matmul_runs", "what the processor has for it"),
    ("override", "stock kernels are taken over by"),
    ("taken_over", "ops taken over"),
    ("ops", "ops with a kernel"),
)


@click.command("info")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(as_json):
    """Show what would be loaded for this Python's TensorFlow, from where, and what it offers.

    Loads the library into this process to ask it. The exit code is 2 if there is none.
    """
    quiet_tensorflow()
    console = new_console()
    with waiting(console, "asking the library"):
        answer = _ask()
    if as_json:
        print(json.dumps(answer, indent=1))
    else:
        lines = [[words, _text(answer[key])] for key, words in _WORDS]
        console.print(table(None, ("what", "value"), lines, 2))
    if answer["problem"]:
        print(answer["problem"], file=sys.stderr)
        sys.exit(2)


def _ask():
    import blockcell

    import_tensorflow()
    if not blockcell.info()["problem"]:
        blockcell.load()
    return blockcell.info()


def _text(value):
    if isinstance(value, list):
        return ", ".join(value) or "none"
    return "-" if value is None else str(value)
