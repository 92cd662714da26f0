"""The commands of `blockcell`: each in a module of its own, imported when it is called."""

import importlib
import sys

import click

from blockcell.version import __version__

_COMMANDS = {
    "compare": "compare a model or a program without and with the library",
    "run": "run a program with the library loaded and Keras's layers on its kernels",
    "info": "show the library, its TensorFlow, its ops and the machine",
    "verify": "check every kernel against TensorFlow's and a float64 reference",
    "inspect": "list a graph's recurrent nodes, what runs them, and their time",
    "bench": "time single operations, TensorFlow's kernels and ours side by side",
    "build": "build the library for a Python's TensorFlow",
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
    """Faster LSTM and GRU layers on CPUs for TensorFlow and Keras.

    Start with `blockcell compare` and a model file or a Python program.
    """


def main():
    """Runs the command line. Expected errors end it with one line and exit code 2."""
    try:
        program = group.main(prog_name="blockcell", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(INTERRUPTED)
    except ImportError as error:  # LibraryError, or a package that a command needs.
        print(_one_line(error), file=sys.stderr)
        sys.exit(2)
    except Exception as error:
        if not _is_expected(error):
            raise
        print(f"blockcell: {error}", file=sys.stderr)
        sys.exit(2)
    # Of `run`: the errors of a program are its own, so nothing around it may catch them.
    if callable(program):
        program()


def _is_expected(error):
    """Whether a command ends with an error in this way. What can raise one is imported by then."""
    modules = (
        ("blockcell.cli.console", "CommandError"),
        ("blockcell.building", "BuildError"),
        ("blockcell_tools.graph_nodes", "GraphFileError"),
    )
    kinds = [getattr(sys.modules.get(module), name, ()) for module, name in modules]
    return any(isinstance(error, kind) for kind in kinds)


def _one_line(error):
    """What is missing, and where to get it."""
    from blockcell.loader import LibraryError

    if isinstance(error, LibraryError):
        return str(error)
    missing = (error.name or str(error)).split(".")[0]
    return f"blockcell: this command needs {missing}: {sys.executable} -m pip install {missing}"
