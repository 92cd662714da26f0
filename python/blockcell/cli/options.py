"""Options that several commands have, which mean the same in each, and kinds of option values."""

import json
import os
from pathlib import Path

import click

from blockcell.cli.console import writing

LEVELS = ("highest", "high", "medium")

precision_option = click.option(
    "--precision",
    type=click.Choice(LEVELS),
    help="Precision of the library's matrix products (default: that of the environment, or "
    "highest).",
)
"""Of commands that load the library."""

weights_option = click.option(
    "--weights",
    type=click.Choice(("float32", "int8", "int8_except_x")),
    help="Type of packed constant weights, for inference (default: that of the environment, or "
    "float32).",
)
"""Of commands that load the library."""


def choose_weights(weights):
    """Sets the type of weights, if any, before the library is loaded."""
    if weights is not None:
        from blockcell import loader

        os.environ[loader.WEIGHTS_VARIABLE] = weights


COUNT = click.IntRange(min=1)
batch_option = click.option(
    "--batch",
    type=COUNT,
    default=32,
    show_default=True,
    help="Batch size if the file does not fix it.",
)
time_option = click.option(
    "--time",
    type=COUNT,
    default=35,
    show_default=True,
    help="Number of time steps if the file does not fix it.",
)
target_option = click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="NAME",
    help="Operation that defines a step (default: the training operations, or everything "
    "downstream of the cells).",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON in place of tables.")
report_option = click.option("--report", metavar="FILE", help="Write the same JSON to a file.")
quiet_option = click.option(
    "--quiet", is_flag=True, help="Print no tables, notes and progress: only failures, and JSON."
)


def write_json(content, as_json, report):
    """Prints and writes JSON as `--json` and `--report` request.

    Args:
      content: The content of the JSON.
      as_json: The value of `--json`.
      report: The value of `--report`: a file's name, or None.
    """
    text = json.dumps(content, indent=1)
    if as_json:
        print(text)
    if report:
        with writing(report):
            Path(report).write_text(text + "\n", encoding="utf-8")


def choose_precision(level):
    """Sets the level of precision, if any, once the library is loaded."""
    if level is not None:
        import blockcell

        blockcell.set_float32_matmul_precision(level)


class Parsed(click.ParamType):
    """A value that a function parses; its ValueError is the usage error."""

    def __init__(self, parse, words=None):
        """Makes the type.

        Args:
          parse: The function.
          words: Words that stand for something else, and what for: a dictionary.
        """
        self.name = "value"
        self._parse, self._words = parse, words or {}

    def convert(self, value, param, ctx):
        """The value, or a usage error."""
        if not isinstance(value, str):
            return value
        if value in self._words:
            return self._words[value]
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Listed(click.ParamType):
    """One or more values with commas between them; the option's value is their list."""

    def __init__(self, kind):
        """Makes the type, of values of another type."""
        self.name = "list"
        self._kind = click.types.convert_type(kind)

    def convert(self, value, param, ctx):
        """The list, or a usage error."""
        if not isinstance(value, str):
            return value
        return [self._kind(part.strip(), param, ctx) for part in value.split(",")]
