"""Runs the command line, in a process of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

from helpers import isolated

ROOT = Path(__file__).resolve().parents[3]


FORKED = ("bench", "compare", "info", "inspect", "verify")
"""The commands that import TensorFlow at once: they run in a process that has done so already."""


def run(*words, code=0, **variables):
    """Runs `python -m blockcell`; returns what it prints, after a check of its exit code."""
    if words[0] in FORKED and isolated.are_ours(variables):
        changes = {"BLOCKCELL_OVERRIDE": None, **variables}
        ended, printed, said = isolated.run_program("blockcell", list(map(str, words)), changes)
        assert ended == code, printed + said
        return printed, said
    paths = [
        variables.pop("PYTHONPATH", ""),
        str(ROOT / "python"),
        os.environ.get("PYTHONPATH", ""),
    ]
    path = os.pathsep.join(filter(None, paths))
    environment = dict(os.environ, PYTHONPATH=path, **variables)
    environment.pop("BLOCKCELL_OVERRIDE", None)
    process = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "blockcell", *map(str, words)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert process.returncode == code, process.stdout + process.stderr
    assert "blockcell panicked" not in process.stderr, process.stderr
    return process.stdout, process.stderr


def documented(command):
    """The names that the page on the command line lists for the JSON of a command."""
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    (row,) = re.findall(rf"^\| `{command}` \| (.*`.*) \|$", page.partition("## JSON")[2], re.M)
    return set(re.findall(r"`(\w+)`", row))
