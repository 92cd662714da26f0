"""Runs functions in a process of their own, several in one process, and reports each.

A library cannot be unloaded, so many tests need a process without it. Importing TensorFlow takes
seconds, so such a process is forked from one that has imported it. Tests share one where they can.
A function that kills the process fails alone: those after it are run in another.
"""

import gc
import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent.parent
PATHS = [TESTS.parent.parent / "python", TESTS, TESTS / "processes"]
MARK = "isolated-outcome:"
SECONDS = 480  # A process that takes longer hangs: the longest take 240 s on a busy machine.


def run(module, names, environment=None, imported=True):
    """Calls functions of a module in a fresh process.

    Args:
      module: Name of a module in the folder `processes`. Its function `prepare()`, if it has one,
        is called before all others.
      names: Names of functions without arguments, called in this order.
      environment: Variables to change; None as a value removes one.
      imported: Whether TensorFlow may have been imported before.

    Returns:
      A dictionary from each name to its outcome: {"value": ...} with what the function returned
      (JSON), or {"error": text}.
    """
    outcomes = {}
    while len(outcomes) < len(names):
        left = [name for name in names if name not in outcomes]
        printed, end = _run_process(module, left, environment, imported)
        for line in printed.splitlines():
            if line.startswith(MARK):
                outcomes.update(json.loads(line[len(MARK) :]))
        if len(outcomes) < len(names):
            culprit = next(name for name in names if name not in outcomes)
            outcomes[culprit] = {"error": end}
    return outcomes


def run_program(module, words, changes, folder=None):
    """Runs `python -m module`, as a process that has imported TensorFlow already.

    Args:
      module: The program.
      words: Its arguments.
      changes: Variables of the environment to change; None as a value removes one.
      folder: Where it runs; by default where this process does.

    Returns:
      The exit code, and what was written to the standard output and to the standard error.
    """
    with tempfile.TemporaryFile("w+") as printed, tempfile.TemporaryFile("w+") as complaints:
        outputs = printed.fileno(), complaints.fileno()
        request = {"program": module, "words": words, "changes": changes}
        code = _Nursery.get().status(outputs, folder=str(folder or os.getcwd()), **request)
        printed.seek(0)
        complaints.seek(0)
        output, complaint = printed.read(), complaints.read()
        assert "blockcell panicked" not in complaint, complaint
        return code, output, complaint


def are_ours(variables):
    """Whether variables are the library's, which reads them when it is loaded.

    TensorFlow reads others, some of them while it is imported.
    """
    return all(name.startswith(("BLOCKCELL_", "FAILPOINTS")) for name in variables)


def value(outcome):
    """What the function returned; fails the test if it did not."""
    if "error" in outcome:
        pytest.fail(outcome["error"], pytrace=False)
    return outcome["value"]


def _run_process(module, names, environment, imported):
    """Returns what the process printed, and how it ended."""
    changes = {"BLOCKCELL_OVERRIDE": None, **(environment or {})}
    fork = imported and are_ours(changes)
    with tempfile.TemporaryFile("w+") as printed, tempfile.TemporaryFile("w+") as complaints:
        outputs = printed.fileno(), complaints.fileno()
        run_process = _Nursery.get().run if fork else _spawn
        end = run_process(module, names, changes, outputs)
        printed.seek(0)
        complaints.seek(0)
        return printed.read(), f"{end}\n{complaints.read()[-4000:]}"


def _spawn(module, names, changes, outputs):
    """Runs a process that imports TensorFlow, and returns how it ended."""
    variables = _variables()
    for name, setting in changes.items():
        variables.pop(name, None)
        if setting is not None:
            variables[name] = setting
    process = subprocess.Popen(
        [sys.executable, "-m", "helpers.isolated", module] + names,
        env=variables,
        stdout=outputs[0],
        stderr=outputs[1],
    )
    try:
        return _end(process.wait(timeout=SECONDS))
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return f"the process was ended after {SECONDS} s"


def _variables():
    path = os.pathsep.join(map(str, PATHS))
    return dict(os.environ, TF_CPP_MIN_LOG_LEVEL="2", PYTHONPATH=path)


def _end(status):
    return f"the process ended with status {status}"


class _Nursery:
    """A process that has imported TensorFlow and done nothing else, and forks for each run."""

    _only = None

    @classmethod
    def get(cls):
        if cls._only is None:
            cls._only = cls()
        return cls._only

    def __init__(self):
        self._process = subprocess.Popen(
            [sys.executable, "-m", "helpers.isolated"],
            env=_variables(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, module, names, changes, outputs):
        """Runs functions in a process, and returns how it ended."""
        return _end(self.status(outputs, module=module, names=names, changes=changes))

    def status(self, outputs, **request):
        """Runs a process, and returns its exit code, or minus the signal that ended it."""
        request["outputs"] = [f"/proc/{os.getpid()}/fd/{number}" for number in outputs]
        print(json.dumps(request), file=self._process.stdin, flush=True)
        child = int(self._process.stdout.readline())
        timer = threading.Timer(SECONDS, os.kill, (child, signal.SIGKILL))
        timer.start()
        status = int(self._process.stdout.readline())
        timer.cancel()
        return status


def _serve():
    import tensorflow  # noqa: F401

    freeze_objects()
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            for number, path in enumerate(request["outputs"], 1):
                os.dup2(os.open(path, os.O_WRONLY | os.O_APPEND), number)
            for name, setting in request["changes"].items():
                os.environ.pop(name, None)
                if setting is not None:
                    os.environ[name] = setting
            if "program" in request:
                os.chdir(request["folder"])
                warnings.simplefilter("ignore")
                sys.argv = [request["program"], *request["words"]]
                return runpy.run_module(request["program"], run_name="__main__", alter_sys=True)
            return _main(request["module"], request["names"])
        print(child, flush=True)
        status = os.waitpid(child, 0)[1]
        code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        print(code, flush=True)


def freeze_objects():
    """Takes all objects of this time out of garbage collections, in this process and its forks.

    Importing TensorFlow makes hundreds of thousands, which live as long as the process. Collections
    would look at them again and again: a third of the time of all tests.
    """
    gc.freeze()


def _main(module, names):
    functions = vars(importlib.import_module(module))
    unprepared = _outcome(functions.get("prepare", lambda: None))
    freeze_objects()
    for name in names:
        outcome = unprepared if "error" in unprepared else _outcome(functions[name])
        print(MARK + json.dumps({name: outcome}), flush=True)
    # At the end, as it makes TensorFlow start its runtime.
    if not functions.get("PASSES_FAIL") and _failed_passes():
        error = "a pass over a graph failed, and left it as it was: see the standard error"
        print(MARK + json.dumps({name: {"error": error} for name in names}), flush=True)


def _failed_passes():
    """How many passes over graphs of this process failed, which no result shows."""
    blockcell = sys.modules.get("blockcell")
    return blockcell is not None and blockcell.info()["failed_passes"]


def _outcome(function):
    try:
        return {"value": function()}
    except Exception:
        return {"error": traceback.format_exc()}


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2:]) if sys.argv[1:] else _serve()
