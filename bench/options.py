"""Command line arguments, and their types."""

import argparse
from pathlib import Path


def positive(kind):
    """A type of argument: a number above zero."""

    def parse(text):
        number = kind(text)
        if not number > 0:
            raise argparse.ArgumentTypeError(f"{text} is not above 0")
        return number

    return parse


def add_turns(parser, seconds):
    """Adds the options of a comparison of processes that take turns.

    Args:
      parser: The `argparse.ArgumentParser`.
      seconds: How long the rounds of a row take if nothing is said.
    """
    add = parser.add_argument
    add("--threads", nargs="+", type=positive(int), default=[1, 2], metavar="N")
    add("--seconds", type=positive(float), default=seconds, help="time for the rounds of a row")
    add("--library", metavar="FILE", help="libblockcell.so to measure")
    add("--output", type=Path, default=Path("build") / "bench", metavar="FOLDER")
    add("--seed", type=int, default=20191018, help="of the inputs (default: %(default)s)")
