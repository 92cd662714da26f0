"""Modules that do their work in a process of their own."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Sequence


def run_module(
    module: str, arguments: Sequence[str], without: Sequence[str] = (), **variables: str
) -> "subprocess.CompletedProcess[Any]":
    """Runs `python -m module`, with what it prints kept.

    Args:
      module: Its name; the packages beside this one are found.
      arguments: Its arguments.
      without: Environment variables that it must not have.
      **variables: Those that it has, beside those of this process.
    """
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **variables}
    for name in without:
        environment.pop(name, None)
    paths = [str(Path(__file__).resolve().parent.parent), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def last_line(process: "subprocess.CompletedProcess[Any]") -> str:
    """The last line that a process has written to the standard error: why it failed."""
    return (process.stderr.strip().splitlines() or ["no message"])[-1]
