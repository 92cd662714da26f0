"""The commands of `blockcell`: each in a module of its own, imported when it is called."""

import importlib
import sys

import click

from blockcell.version import __version__

_COMMANDS = {
    "info": "show what is loaded, or would be, and from where",
    "build": "build the library for the TensorFlow of a Python",
    "verify": "check every kernel against TensorFlow's and a float64 reference",
    "inspect": "list a graph's block RNN nodes, what runs them, and what they cost",
    "run": "run a program with the library loaded and Keras's layers on its kernels",
    "bench": "time TensorFlow's kernels and ours side by side",
}
# A command's module must not be called like one of Python's own: `inspect` would be.
_MODULES = {"inspect": "inspect_graph"}


# As a shell has it of a program that SIGINT ended.
INTERRUPTED = 130


class Commands(click.Group):
    """Finds a command in the module of its name, so that none waits for what others import."""

    def invoke(self, context):
        """Runs a command. Ctrl-C ends it with one line."""
        try:
            return super().invoke(context)
        except KeyboardInterrupt:
            print("blockcell: interrupted", file=sys.stderr)
            sys.exit(INTERRUPTED)

    def list_commands(self, context):
        """The names, in the order of the table."""
        return list(_COMMANDS)

    def get_command(self, context, name):
        """The click command, or None."""
        if name not in _COMMANDS:
            return None
        module = importlib.import_module("blockcell.cli." + _MODULES.get(name, name))
        return module.command

    def format_commands(self, context, formatter):
        """Lists the commands without importing their modules."""
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="blockcell")
def group():
    """CPU kernels in Rust for TensorFlow's block RNN ops."""


def main():
    """Runs the command line. Expected errors end it with one line and exit code 2."""
    try:
        group(prog_name="blockcell")
    except ImportError as error:  # LibraryError, or a package that a command needs.
        print(_one_line(error), file=sys.stderr)
        sys.exit(2)
    except _expected() as error:
        print(f"blockcell: {error}", file=sys.stderr)
        sys.exit(2)


def _expected():
    """The errors of commands. What raises them imports more than most commands need."""
    from blockcell.building import BuildError
    from blockcell.cli.console import CommandError
    from blockcell_tools.graph_nodes import GraphFileError

    return CommandError, BuildError, GraphFileError


def _one_line(error):
    """What is missing, and where to get it."""
    from blockcell.loader import LibraryError

    if isinstance(error, LibraryError):
        return str(error)
    missing = (error.name or str(error)).split(".")[0]
    return f"blockcell: this command needs {missing}: {sys.executable} -m pip install {missing}"
