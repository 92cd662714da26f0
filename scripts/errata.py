"""Runs the programs of docs/tensorflow-errata.md with some Pythons, on TensorFlow's own kernels.

    python3 scripts/errata.py PYTHON...

Prints a table in Markdown: what each program prints in the TensorFlow of each Python.
"""

import argparse
import os
import re
import subprocess
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "tensorflow-errata.md"
ENDED = "ended"


def _section():
    """The page's section with the programs and the table."""
    text = PAGE.read_text(encoding="utf-8").partition("\n## Reproductions\n")[2]
    return text.partition("\n## ")[0]


def programs():
    """The programs of the page, by their headings."""
    pattern = r"^### (.*?)$.*?^```python\n(.*?)^```$"
    found = re.findall(pattern, _section(), re.DOTALL | re.MULTILINE)
    return dict(found)


def table():
    """What the page says: by heading, a dictionary of outcomes by release."""
    lines = [line.strip("| ").split(" | ") for line in _section().splitlines() if line[:2] == "| "]
    return {line[0]: dict(zip(lines[0][1:], line[1:])) for line in lines[1:]}


def _python(python, code):
    environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3")
    done = subprocess.run(
        [python, "-W", "ignore", "-c", code],
        env=environment,
        capture_output=True,
        text=True,
    )
    return done.returncode, (done.stdout or done.stderr).strip()


def outcome(code, printed):
    """What a program came to.

    Args:
      code: Its exit code; below 0 for a signal.
      printed: What it has printed.
    """
    if code < 0:
        return ENDED
    return printed.splitlines()[-1] if code == 0 else f"error: {printed.splitlines()[-1]}"


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pythons", nargs="+", metavar="PYTHON")
    pythons = parser.parse_args().pythons
    releases = [_python(one, "import tensorflow as t; print(t.__version__)")[1] for one in pythons]
    releases = [release.splitlines()[-1] for release in releases]
    print("| program | " + " | ".join(releases) + " |")
    print("|---" * (1 + len(pythons)) + "|")
    for heading, code in programs().items():
        cells = [outcome(*_python(python, code)) for python in pythons]
        print(f"| {heading} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
