"""What all commands share: console, tables, progress bars and their kind of error."""

import contextlib
import importlib
import os
import sys

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table


class CommandError(Exception):
    """A command cannot do what it is asked to; one line that names a way out."""


@contextlib.contextmanager
def writing(path):
    """What is done within writes to a path, and says in one line why it cannot.

    Raises:
      CommandError: It cannot: the disk is full, for example.
    """
    try:
        yield
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror or error}") from error


def new_console(quiet=False):
    """A console; wide enough for the tables where there is no terminal to ask."""
    console = Console(quiet=quiet)
    return console if console.is_terminal else Console(quiet=quiet, width=140)


def say(console, text):
    """Prints a line as it is, however long."""
    console.print(text, soft_wrap=True, highlight=False)


def new_progress(console):
    """A progress bar on the standard error's terminal; nothing where there is none."""
    bars = Console(stderr=True, quiet=console.quiet)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeElapsedColumn(),
        console=bars,
        disable=not bars.is_terminal,
        transient=True,
    )


@contextlib.contextmanager
def waiting(console, words):
    """Shows that something takes its time."""
    bars = Console(stderr=True, quiet=console.quiet)
    if not bars.is_terminal:
        yield
        return
    with bars.status(words):
        yield


def table(title, columns, lines, texts, note=None, styles=None):
    """A table for the terminal.

    Args:
      title: Its title.
      columns: Heads.
      lines: Cells of each line.
      texts: How many of the first columns are text, and not numbers.
      note: What stands below it.
      styles: A style for each line, or None.
    """
    made = Table(title=title, caption=note)
    for number, column in enumerate(columns):
        made.add_column(column, justify="left" if number < texts else "right")
    for number, cells in enumerate(lines):
        made.add_row(*cells, style=styles[number] if styles else None)
    return made


def quiet_tensorflow(own_kernels=True):
    """Keeps TensorFlow's messages about the machine off the terminal; call before importing it.

    Args:
      own_kernels: Whether TensorFlow is to compute with its own kernels, not with oneDNN's.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if own_kernels:
        os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")


def import_tensorflow():
    """Imports TensorFlow.

    Raises:
      CommandError: It is not installed, or not in order.
    """
    try:
        importlib.import_module("tensorflow")
    except Exception as error:  # Of any kind: a wrong protobuf is a TypeError.
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise CommandError(
            f"{sys.executable} cannot import TensorFlow ({first}): install one that works there "
            "(pip install tensorflow)"
        ) from error
