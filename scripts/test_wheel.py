"""Tests the wheel beside each TensorFlow of `wheel_tensorflows.txt`, and prints a table.

In a fresh environment for each it installs TensorFlow, what the table pins and the wheel. There it
runs `blockcell verify --quick`, and the Python blocks of README and of the documentation's first
page. Run by ``make wheel-test``. The exit code is 1 if any of them fails. A release whose Python is
not found is left out, and the table says so. Each environment is deleted when it was tested.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from make_wheel import ROOT, releases

FOLDER = ROOT / "build" / "wheel-test"
COLUMNS = ("TensorFlow", "Python", "flags", "library", "verify --quick", "pages")
VERIFIED, LEFT_OUT = 4, "left out"
PAGES = ("README.md", "docs/index.md")
"""Pages whose Python blocks must run; the blocks say which TensorFlow they need."""


def find_python(version):
    """A Python of this version, on the PATH or in pyenv; None if there is none."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    candidates = [shutil.which("python" + version), *root.glob(f"versions/{version}.*/bin/python")]
    for python in filter(None, candidates):
        # A pyenv shim exists for versions that are not active; only one that runs counts.
        command = [str(python), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        if _run(command).stdout.strip() == version:
            return str(python)
    return None


def _run(command, **options):
    """Runs a command; its output, standard error included, is in the result."""
    return subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
    )


def check(wheel, minor, package, version, pins):
    """The cells of a line of the table, and whether all is well."""
    python = find_python(version)
    if python is None:
        return _line(package, version, LEFT_OUT + ": no such Python"), True
    environment = FOLDER / minor
    shutil.rmtree(str(environment), ignore_errors=True)
    try:
        steps = [[python, "-m", "venv", str(environment)]]
        pip = [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        steps += [[*pip, "--upgrade", "pip"], [*pip, package, *pins, str(wheel)]]
        for step in steps:
            done = _run(step)
            if done.returncode != 0:
                return _line(package, version, _last_line(done.stdout)), False
        return _try(environment, package, version, minor)
    finally:
        shutil.rmtree(str(environment), ignore_errors=True)


def _line(package, version, verified, flags="-", library="-", pages="-"):
    """The cells of a line, in the order of `COLUMNS`."""
    return [package, version, flags, library, verified, pages]


def _try(environment, package, version, minor):
    python = str(environment / "bin" / "python")
    # Away from the source tree, whose package must not be found.
    command = [str(environment / "bin" / "blockcell"), "verify", "--quick", "--json"]
    process = subprocess.run(command, cwd=str(FOLDER), stdout=subprocess.PIPE, text=True)
    flags = _same_flags(python, environment)
    try:
        found = json.loads(process.stdout)
    except ValueError:
        return _line(package, version, "did not run", flags), False
    library = Path(found["library"]).parent.name
    passed = f"{found['cases'] - found['failed']} of {found['cases']} passed"
    pages = _run([python, str(ROOT / "tests" / "python" / "pages.py"), *PAGES], cwd=str(FOLDER))
    good = process.returncode == 0 and library == "tf-" + minor and flags == "same"
    said = "run" if pages.returncode == 0 else _last_line(pages.stdout)
    line = _line(package, version, passed, flags, library, said)
    return line, good and pages.returncode == 0


def _same_flags(python, environment):
    """Whether the flags that the wheel was built with are those that this TensorFlow states."""
    script = str(ROOT / "scripts" / "tensorflow_flags.py")
    (framework,) = environment.glob("lib/python*/site-packages/**/libtensorflow_framework.so.[0-9]")
    quiet = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3")
    stated = subprocess.run([python, script], stdout=subprocess.PIPE, text=True, env=quiet)
    derived = _run([sys.executable, script, str(framework.parent)])
    answers = [done.stdout.partition("blockcell\n")[2] for done in (stated, derived)]
    return "same" if answers[0] == answers[1] and answers[0] else "DIFFERENT"


def _last_line(text):
    return next((line for line in reversed(text.splitlines()) if line.strip()), "no output")


def print_table(lines):
    """Prints the table in columns, without anything to install."""
    widths = [max(len(line[at]) for line in [COLUMNS, *lines]) for at in range(len(COLUMNS))]
    for line in [COLUMNS, ["-" * width for width in widths], *lines]:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())


def main():
    """Reads the command line."""
    here = releases(platform.machine())
    known = [release[0] for release in here]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minors", nargs="+", choices=known, default=known)
    parser.add_argument("--require", action="store_true", help="fail where one is left out")
    parser.add_argument("--wheel", type=Path, help="default: the newest in dist/")
    arguments = parser.parse_args()
    wheels = sorted((ROOT / "dist").glob("blockcell-*.whl"), key=lambda path: path.stat().st_mtime)
    wheel = arguments.wheel or (wheels[-1] if wheels else sys.exit("no wheel: run make wheel"))
    FOLDER.mkdir(parents=True, exist_ok=True)
    lines, good = [], True
    for minor, package, version, pins in here:
        if minor in arguments.minors:
            print(f"TensorFlow {minor}: testing", file=sys.stderr, flush=True)
            line, well = check(wheel.resolve(), minor, package, version, pins)
            print("  ".join(line), file=sys.stderr, flush=True)
            lines.append(line)
            good = good and well and not (arguments.require and line[VERIFIED].startswith(LEFT_OUT))
    print_table(lines)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
