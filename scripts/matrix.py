"""Builds, loads and tests the library with every supported TensorFlow whose Python is found.

Run by ``make matrix``. Exits with 1 if any of them fails.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

from rich.console import Console
from rich.table import Table

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORKERS = ["--numprocesses=auto", "--maxprocesses=4", "--dist=loadfile"]
LINES = ["1.15", "2.4", "2.12", "2.16", "2.18", "2.21"]
INFO = "import sys, json, blockcell; blockcell.load(); json.dump(blockcell.info(), sys.stdout)"


def make(*words):
    """Runs make quietly; its output comes only with a failure."""
    command = ["make", "--no-print-directory", *words]
    return subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def last_line(text):
    """The last line of `text` that is not empty."""
    return next((line for line in reversed(text.splitlines()) if line.strip()), "no output")


def test_counts(report):
    """`passed, failed, skipped` of a JUnit file."""
    suite = ElementTree.parse(report).getroot().find("testsuite")
    total, bad, skipped = (
        sum(int(suite.get(name, 0)) for name in names)
        for names in [("tests",), ("failures", "errors"), ("skipped",)]
    )
    return total - bad - skipped, bad, skipped


def check(line, console):
    """One row of the table, and whether all is well."""
    found = subprocess.run(
        ["scripts/find_python.sh", line], cwd=ROOT, capture_output=True, text=True
    )
    if found.returncode != 0:
        return [line, "not found", "-", "-", "-"], True
    console.print(f"TensorFlow {line}: building")
    built = make("lib", f"TF={line}")
    if built.returncode != 0:
        return [line, found.stdout.strip(), f"[red]{last_line(built.stdout)}", "-", "-"], False

    python = ROOT / (".venv" if line == "2.21" else f".venv-{line}") / "bin" / "python"
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "python"), TF_CPP_MIN_LOG_LEVEL="3")
    version = subprocess.run(
        [python, "-c", "import sys; print('%d.%d.%d' % sys.version_info[:3])"],
        capture_output=True,
        text=True,
    ).stdout.strip()
    loaded = subprocess.run([python, "-c", INFO], env=environment, capture_output=True, text=True)
    if loaded.returncode != 0:
        return [line, version, "ok", f"[red]{last_line(loaded.stderr)}", "-"], False
    info = json.loads(loaded.stdout)

    console.print(f"TensorFlow {line}: testing")
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.xml"
        run = subprocess.run(
            [python, "-m", "pytest", "-q", *WORKERS, f"--junitxml={report}"],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        if not report.exists():
            return [line, version, "ok", "ok", f"[red]{last_line(run.stdout)}"], False
        passed, failed, skipped = test_counts(report)
    if failed:
        console.print(run.stdout, markup=False)
    tests = f"{passed} passed, {failed} failed, {skipped} skipped"
    row = [info["tensorflow_running"], version, "ok", f"{info['isa']}, {info['override']}", tests]
    return row, run.returncode == 0


def main():
    """Prints the table."""
    console = Console()
    table = Table("TensorFlow", "Python", "build", "load", "tests", title="blockcell")
    good = True
    for line in LINES:
        row, well = check(line, console)
        table.add_row(*row)
        good = good and well
    console.print(table)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
