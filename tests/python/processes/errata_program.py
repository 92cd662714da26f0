"""Runs a program of docs/tensorflow-errata.md: `python -m errata_program HEADING`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))

import errata  # noqa: E402

if __name__ == "__main__":
    exec(compile(errata.programs()[sys.argv[1]], sys.argv[1], "exec"), {"__name__": "__main__"})
