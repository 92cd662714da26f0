"""`blockcell bench`: hands the options to the benchmark's own parser."""

import sys

import click


@click.command(
    "bench",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def command(words):
    """Time TensorFlow's kernels and ours side by side."""
    from blockcell.bench import command_line
    from blockcell.cli.console import quiet_tensorflow

    quiet_tensorflow()
    sys.exit(command_line.main(list(words)))
