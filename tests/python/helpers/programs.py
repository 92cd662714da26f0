"""Runs programs of the project as users do."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 400  # A program that takes longer hangs; the longest take a quarter of it.


def run(program, *arguments, environment=None):
    """Runs a Python program in the root of the source tree, without blockcell's settings.

    Args:
      program: Its path in the source tree.
      *arguments: What follows on the command line.
      environment: Variables to set.

    Returns:
      Its exit code, and what it printed to standard output and standard error.
    """
    variables = {name: value for name, value in os.environ.items() if "BLOCKCELL" not in name}
    variables.update(environment or {})
    done = subprocess.run(
        [sys.executable, str(ROOT / program), *map(str, arguments)],
        cwd=str(ROOT),
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
    )
    assert "blockcell panicked" not in done.stdout, done.stdout
    return done.returncode, done.stdout
