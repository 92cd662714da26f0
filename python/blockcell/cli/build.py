"""`blockcell build`."""

import sys
from pathlib import Path

import click

from blockcell import building
from blockcell.cli.console import CommandError, new_console, say, waiting
from blockcell.cli.options import quiet_option


@click.command("build")
@click.option(
    "--python",
    default=sys.executable,
    metavar="FILE",
    help="The Python for whose TensorFlow to build (default: this Python).",
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Write it to FOLDER/tf-<minor>/ (default: your cache folder, where load() looks).",
)
@quiet_option
def command(python, output, quiet):
    """Build the library from the sources that come with this package.

    Needs cargo (Rust 1.89 or later) and a C++ compiler. Takes some minutes the first time. Prints
    the library's file.
    """
    tree = building.source_tree()
    if tree is None:
        raise CommandError(
            "this installation has no sources: reinstall blockcell (pip install "
            "--force-reinstall blockcell), or build in a source tree"
        )
    building.check_tools()
    console = new_console(quiet)
    with waiting(console, f"asking {python} for its TensorFlow"):
        answer = building.ask(tree, python)
    version = answer.splitlines()[0]
    say(console, f"Building for TensorFlow {version} from {tree}")
    with waiting(console, "compiling"):
        folder = output or building.user_folder()
        library = building.build(tree, folder, answer, quiet=True)
    print(library)
