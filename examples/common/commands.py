"""How the examples' commands begin and end."""

import argparse
import pathlib
import sys

from rich.console import Console
from rich.markup import escape

from common.workers import WorkerError


def parser_of(description, output, contents):
    """Returns a parser of the arguments that all examples have.

    Args:
      description: What the command does.
      output: The folder that it writes to by default.
      contents: What it writes there.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--library", type=pathlib.Path, required=True, help="libblockcell.so")
    parser.add_argument(
        "--output",
        type=pathlib.Path,
        default=pathlib.Path(output),
        help=f"folder for {contents} (default: {output})",
    )
    return parser


def parsed(parser):
    """Parses the command line, and checks that the library is there."""
    result = parser.parse_args()
    if not result.library.is_file():
        parser.error(f"there is no {result.library}; `make lib` builds it")
    return result


def print_failures(console, failures):
    """Prints what went wrong, a line each.

    Args:
      console: A `rich.console.Console`.
      failures: The lines.

    Returns:
      The exit code: 1 if there are any, otherwise 0.
    """
    for failure in failures:
        console.print(f"[bold red]FAILED[/] {escape(failure)}", soft_wrap=True)
    return 1 if failures else 0


def call(run, options):
    """Runs a command. What it cannot mend, and Ctrl-C, end it with a line.

    Args:
      run: A function of a `rich.console.Console` and the options, which returns the exit code.
      options: What the command line says.

    Returns:
      The exit code: 130 if the command was interrupted, 1 if it failed.
    """
    # Tables of the examples need this width where there is no terminal.
    console = Console(width=None if sys.stdout.isatty() else 120)
    try:
        return run(console, options)
    except KeyboardInterrupt:
        console.print("Interrupted; the workers are stopped.")
        return 130
    except (WorkerError, RuntimeError, OSError) as error:
        return print_failures(console, [str(error)])
