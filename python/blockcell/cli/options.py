"""Kinds of option values that click does not have."""

import os

import click

LEVELS = ("highest", "high", "medium")

precision_option = click.option(
    "--precision",
    type=click.Choice(LEVELS),
    help="How precise matrix products of the library's kernels are (default: as the environment "
    "says, or highest).",
)
"""Of commands that load the library."""

weights_option = click.option(
    "--weights",
    type=click.Choice(("float32", "int8", "int8_except_x")),
    help="What weights that are constants are packed as, for inference (default: as the "
    "environment says, or float32).",
)
"""Of commands that load the library."""


def choose_weights(weights):
    """Makes these hold, if any, before the library is loaded."""
    if weights is not None:
        from blockcell import loader

        os.environ[loader.WEIGHTS_VARIABLE] = weights


def choose_precision(level):
    """Makes a level hold, if there is one, once the library is loaded."""
    if level is not None:
        import blockcell

        blockcell.set_float32_matmul_precision(level)


class Parsed(click.ParamType):
    """What a function makes of the text; its ValueError says what is wrong with the text."""

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
