"""`blockcell run`."""

import json
import sys
from pathlib import Path

import click

from blockcell.cli.console import CommandError, writing
from blockcell.cli.options import (
    choose_weights,
    json_option,
    precision_option,
    quiet_option,
    report_option,
    weights_option,
)
from blockcell_tools import hosting


@click.command(
    "run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
@click.option(
    "--keras/--no-keras", default=True, help="Call blockcell.keras.enable() (default: yes)."
)
@precision_option
@weights_option
@json_option
@report_option
@quiet_option
@click.option("-m", "is_module", is_flag=True, help="SCRIPT is the name of a module.")
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(keras, precision, weights, as_json, report, quiet, is_module, script, arguments):
    """Run a Python program with the library loaded and Keras's layers on its kernels.

    The program needs no changes. As soon as it has imported TensorFlow, the library is loaded, and
    as soon as it has imported Keras, blockcell.keras.enable() is called. At the end, the calls of
    the kernels are printed to stderr. The exit code is the program's.
    """
    if not is_module and not Path(script).exists():
        raise CommandError(f"there is no file {script}")
    choose_weights(weights)
    # It runs after the command line has finished, so that errors of the program are not taken for
    # errors of the command.
    program = hosting.Program(script, arguments, is_module)
    return lambda: _run(program, keras, precision, as_json, report, quiet)


def _run(program, keras, precision, as_json, report, quiet):
    said = hosting.collect_log()
    hosting.prepare(keras, precision)
    try:
        hosting.execute(program)
    finally:
        ran = hosting.found(said)
        if as_json:
            print(json.dumps(ran), file=sys.stderr)
        elif not quiet:
            for line in hosting.lines(ran):
                print(f"blockcell: {line}", file=sys.stderr)
        is_written = not report or _is_written(report, ran)
    if not is_written:
        sys.exit(2)


def _is_written(report, ran):
    """Writes the report. If it cannot, it says why: an error of the program itself goes on."""
    try:
        with writing(report):
            Path(report).write_text(json.dumps(ran, indent=1) + "\n", encoding="utf-8")
    except CommandError as error:
        print(f"blockcell: {error}", file=sys.stderr)
        return False
    return True
