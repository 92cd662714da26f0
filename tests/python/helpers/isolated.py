"""Runs functions in a process of their own, several in one process, and reports each.

Importing TensorFlow takes seconds and a library cannot be unloaded, so tests that need a fresh
process share one where they can. A function that kills the process fails alone: those after it are
run in another.
"""

import importlib
import json
import os
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent.parent
PATHS = [TESTS.parent.parent / "python", TESTS, TESTS / "processes"]
MARK = "isolated-outcome:"
SECONDS = 480  # A process that takes longer hangs: the longest take 240 s on a busy machine.


def run(module, names, environment=None):
    """Calls functions of a module in a fresh process.

    Args:
      module: Name of a module in the folder `processes`. Its function `prepare()`, if it has one,
        is called before all others.
      names: Names of functions without arguments, called in this order.
      environment: Variables to change; None as a value removes one.

    Returns:
      A dictionary from each name to its outcome: {"value": ...} with what the function returned
      (JSON), or {"error": text}.
    """
    outcomes = {}
    while len(outcomes) < len(names):
        left = [name for name in names if name not in outcomes]
        printed, end = _run_process(module, left, environment)
        for line in printed.splitlines():
            if line.startswith(MARK):
                outcomes.update(json.loads(line[len(MARK) :]))
        if len(outcomes) < len(names):
            culprit = next(name for name in names if name not in outcomes)
            outcomes[culprit] = {"error": end}
    return outcomes


def value(outcome):
    """What the function returned; fails the test if it did not."""
    if "error" in outcome:
        pytest.fail(outcome["error"], pytrace=False)
    return outcome["value"]


def _run_process(module, names, environment):
    """Returns what the process printed, and how it ended."""
    variables = dict(
        os.environ, TF_CPP_MIN_LOG_LEVEL="2", PYTHONPATH=os.pathsep.join(map(str, PATHS))
    )
    variables.pop("BLOCKCELL_OVERRIDE", None)
    for name, setting in (environment or {}).items():
        variables.pop(name, None)
        if setting is not None:
            variables[name] = setting
    process = subprocess.Popen(
        [sys.executable, "-m", "helpers.isolated", module] + names,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        printed, complaints = process.communicate(timeout=SECONDS)
        end = f"the process ended with status {process.returncode}"
    except subprocess.TimeoutExpired:
        process.kill()
        printed, complaints = process.communicate()
        end = f"the process was ended after {SECONDS} s"
    return printed, f"{end}\n{complaints[-4000:]}"


def _main(module, names):
    functions = vars(importlib.import_module(module))
    unprepared = _outcome(functions.get("prepare", lambda: None))
    for name in names:
        outcome = unprepared if "error" in unprepared else _outcome(functions[name])
        print(MARK + json.dumps({name: outcome}), flush=True)


def _outcome(function):
    try:
        return {"value": function()}
    except Exception:
        return {"error": traceback.format_exc()}


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2:])
