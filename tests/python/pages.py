"""Reads the code blocks of README and documentation, and runs those of a page.

An HTML comment above a block says what the block needs that the reader does not have to see:

* `not run: REASON`: the block is only read.
* `needs TensorFlow 2: REASON`: the block is run in TensorFlow 2 only.
* `run first: CODE`: Python to run before the block.
* `raised by: CODE`: the block, a `text`, is the message of the exception that this Python raises.
* `printed by: CODE`: the block, a `text`, is part of what this shell command prints.
* `printed like: CODE`: the same, but each number stands for any number, and rules of tables do not
  count.

In a message, `...` stands for any text, and line breaks count as spaces.
"""

import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Dict, NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
MARKS = ("not run", "needs TensorFlow 2", "run first", "raised by", "printed by", "printed like")

_COMMENT = re.compile(r"<!--\s*(.*?)\s*-->", re.DOTALL)
_BLOCK = re.compile(
    r"(?P<comments>(?:^[ ]*<!--(?:(?!-->).)*-->\s*?\n\s*?)*)"
    r"^(?P<indent>[ ]*)```(?P<language>\w*)[^\n]*\n(?P<code>.*?)^(?P=indent)```[ ]*$",
    re.DOTALL | re.MULTILINE,
)


class Block(NamedTuple):
    """A fenced block of a page."""

    page: str
    """The page's path in the repository."""
    line: int
    """The line of the page on which the code begins."""
    language: str
    """`python`, `sh`, ..., or nothing."""
    code: str
    """The code, without the indent of the fence."""
    marks: Dict[str, str]
    """What the comments above it say, by keyword."""


def pages():
    """Returns the paths in the repository of all pages whose blocks are tested."""
    found = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "RELEASING.md")]
    found += sorted((ROOT / "docs").glob("**/*.md")) + sorted(
        (ROOT / "examples").glob("*/README.md")
    )
    return [str(page.relative_to(ROOT)) for page in found]


def blocks(page):
    """Returns the blocks of a page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    result = []
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("code")) + 1
        code = textwrap.dedent(match.group("code"))
        marks = {}
        for comment in _COMMENT.findall(match.group("comments")):
            mark, separator, words = comment.partition(":")
            if separator and mark in MARKS:
                marks[mark] = textwrap.dedent(words).strip()
        result.append(Block(page, line, match.group("language"), code, marks))
    return result


def says(message, shown):
    """Whether a message contains what a page shows of it."""
    shown = " ".join(shown.split())
    pattern = ".*".join(re.escape(part.strip()) for part in shown.split("..."))
    return re.search(pattern, " ".join(message.split())) is not None


def without_numbers(text):
    """A text with one number in the place of each, and without the rules of tables."""
    text = re.sub(r"[\u2500-\u257f]+", " ", text)
    return re.sub(r"\d[\d,.]*\d(e[-+]?\d+)?|\d(e[-+]?\d+)?", "0", text)


def run(page):
    """Runs the blocks of a page in order, in one namespace.

    Raises:
      Exception: What a block raises.
      AssertionError: A message is not as the page shows it.
    """
    import tensorflow as tf

    names = {"__name__": "__main__"}
    for block in blocks(page):
        if "not run" in block.marks:
            continue
        if "needs TensorFlow 2" in block.marks and tf.__version__.startswith("1."):
            continue
        place = f"{block.page}:{block.line}"
        if "run first" in block.marks:
            exec(compile(block.marks["run first"], "above " + place, "exec"), names)
        if block.language == "python":
            # The empty lines give a traceback the page's line numbers.
            code = "\n" * (block.line - 1) + block.code
            exec(compile(code, str(ROOT / block.page), "exec"), names)
        sources = {"raised by": _raised, "printed by": _printed, "printed like": _printed}
        for mark in set(sources).intersection(block.marks):
            message, shown = sources[mark](block.marks[mark], names), block.code
            if mark == "printed like":
                message, shown = without_numbers(message), without_numbers(shown)
            assert says(message, shown), f"{place} shows another message than:\n{message}"


def _raised(code, names):
    try:
        exec(compile(code, "raised by", "exec"), names)
    except Exception as error:
        return str(error)
    return "nothing was raised"


def _printed(command, _):
    done = subprocess.run(
        command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=240
    )
    return done.stdout.decode()


if __name__ == "__main__":
    for name in sys.argv[1:]:
        run(name)
