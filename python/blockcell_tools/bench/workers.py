"""Processes that the benchmark starts, and talks to in lines of JSON."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path


class WorkerError(Exception):
    """A worker did not do its job; says why."""


def environment_of(**variables):
    """The environment of a process that finds these packages, with variables of its own."""
    package = Path(__file__).resolve().parent.parent
    paths = [str(package.parent), os.environ.get("PYTHONPATH")]
    return dict(os.environ, PYTHONPATH=os.pathsep.join(path for path in paths if path), **variables)


class Worker:
    """A running worker module, as `bench.worker.answer` makes them; a context manager."""

    def __init__(self, module, *arguments):
        """Starts it."""
        environment = environment_of(
            # Without this there would be no stock kernel to compare with.
            BLOCKCELL_OVERRIDE="0",
            TF_CPP_MIN_LOG_LEVEL=os.environ.get("TF_CPP_MIN_LOG_LEVEL", "2"),
        )
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 (open as long as the process)
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment,
            universal_newlines=True,
        )

    def __enter__(self):
        """Returns itself."""
        return self

    def __exit__(self, *exception):
        """Ends the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._log):
            with contextlib.suppress(BrokenPipeError):
                stream.close()

    def ask(self, message):
        """Sends a message, and returns the answer.

        Raises:
          WorkerError: It found a problem, or ended.
        """
        try:
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            code = self._process.wait()
            self._log.seek(0)
            tail = "".join(self._log.readlines()[-20:])
            raise WorkerError(f"a measuring process ended ({code}):\n{tail}")
        answer = json.loads(line)
        if "problem" in answer:
            raise WorkerError(answer["problem"])
        return answer
