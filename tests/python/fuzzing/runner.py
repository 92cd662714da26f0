"""Runs programs in a process that rewrites graphs and in one that does not, and compares."""

import collections
import concurrent.futures
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from fuzzing.comparison import LIMITS, NOISES, difference
from fuzzing.messages import Setting, receive, send

TESTS = Path(__file__).resolve().parent.parent
PATHS = [TESTS.parent.parent / "python", TESTS]
MILLISECONDS = 4000  # A call that takes longer hangs: the longest takes 100 ms.
SETTINGS = [Setting(optimized, None, 0.0, 0, MILLISECONDS) for optimized in (True, False)]
START_SECONDS = 240
LOOKS = 20  # What TensorFlow alone gives once in 20 times must not pass for a finding.
DRAWS = 8  # A sum that cancels, or that half rounds, stays as it was with some of them.
OWN = "TensorFlow's own"
"""The kind of a program to which TensorFlow alone gives several answers."""


class Worker:
    """A process for one setting of BLOCKCELL_REWRITE, started again when it has died."""

    def __init__(self, rewrite, python):
        self._rewrite, self._python = rewrite, python
        self._process, self._log = None, None
        self.tensorflow = None

    def run(self, program, settings):
        """The answer of `worker.answer`; "died" or "hang" as the outcome if there is none."""
        self.start()
        seconds = 30 + sum(setting.timeout for setting in settings) * len(program["runs"]) / 1000
        try:
            send(self._process.stdin, (program, settings))
            answer = receive(self._process.stdout, seconds)
            end = "died"
        except TimeoutError:
            answer, end = None, "hang"
        except BrokenPipeError:
            answer, end = None, "died"
        if answer is None:
            self._process.kill()
            status = self._process.wait()
            outcome = {"values": [], "error": end, "message": f"status {status}"}
            outcome["message"] += "\n" + self._said()
            self.close()
            answer = {"outcomes": [outcome] * len(settings), "rewritten": {}}
        return answer

    def kill(self):
        """Ends the process; the next program finds it dead."""
        self._process.kill()
        self._process.wait()

    def close(self):
        if self._process is not None:
            self.kill()
            for stream in (self._process.stdin, self._process.stdout, self._log):
                stream.close()
        self._process = None

    def start(self):
        if self._process is not None:
            return
        environment = dict(
            os.environ,
            TF_CPP_MIN_LOG_LEVEL="3",
            PYTHONPATH=os.pathsep.join(map(str, PATHS)),
            BLOCKCELL_REWRITE=self._rewrite,
        )
        environment.pop("BLOCKCELL_OVERRIDE", None)
        # What the process says, for the case that it dies.
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (open while the process runs)
        self._process = subprocess.Popen(
            [self._python, "-m", "fuzzing.worker"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            bufsize=0,
        )
        self.tensorflow = receive(self._process.stdout, START_SECONDS)
        if self.tensorflow is None:
            raise RuntimeError("a worker does not start:\n" + self._said())

    def _said(self):
        self._log.seek(0)
        return self._log.read().decode(errors="replace")[-4000:]


class Runner:
    """The two processes. Use it as a context manager.

    Attributes:
      tensorflow: The release of TensorFlow, such as "2.21".
      functions: Whether it has functions and loops of TensorFlow 2.
    """

    def __init__(self, python=sys.executable):
        self._stock, self._ours = Worker("0", python), Worker("1", python)
        self._pool = concurrent.futures.ThreadPoolExecutor(2)
        list(self._pool.map(Worker.start, (self._stock, self._ours)))
        self.tensorflow = ".".join(self._stock.tensorflow.split(".")[:2])
        self.functions = not self.tensorflow.startswith("1.")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._pool.shutdown()
        self._stock.close()
        self._ours.close()

    def kill_ours(self):
        """Ends the process that rewrites graphs, as a crash would."""
        self._ours.kill()

    def judge(self, programs, timeout=MILLISECONDS):
        """Runs programs; returns a Verdict of each."""
        settings = [setting._replace(timeout=timeout) for setting in SETTINGS]
        answers = [
            self._pool.submit(lambda worker=worker: [worker.run(p, settings) for p in programs])
            for worker in (self._stock, self._ours)
        ]
        return [
            self._verdict(program, stock, ours, settings)
            for program, stock, ours in zip(programs, *[answer.result() for answer in answers])
        ]

    def fail(self, programs, kind):
        """Tells of each of some programs whether it is a finding of this kind."""
        # What hung for long once will hang again.
        timeout = MILLISECONDS // 4 if kind == "hang" else MILLISECONDS
        return [verdict.kind == kind for verdict in self.judge(programs, timeout)]

    def _verdict(self, program, stock, ours, settings):
        for answer in (stock, ours):
            if "invalid" in answer:
                return Verdict(program, "invalid", answer["invalid"], {}, None)
        limit = _of_types(program, LIMITS)
        wanted, got = stock["outcomes"], ours["outcomes"]
        error = wanted[1].get("error")
        same = [difference(w, g, limit) is None for w, g in zip(wanted, got)]
        if all(same) and difference(wanted[0], wanted[1], limit) is None:
            return Verdict(program, None, "", ours["rewritten"], error)
        if settings == SETTINGS:
            wanted = _patiently(self._stock, program, wanted)
            got = _patiently(self._ours, program, got)
        return self._second_look(program, wanted, got, ours["rewritten"], settings)

    def _second_look(self, program, wanted, got, rewritten, settings):
        """Lets TensorFlow alone run it with other threads, and with values a little different."""
        limit = _of_types(program, LIMITS)
        noise = _of_types(program, NOISES)
        changed = [s._replace(noise=noise, draw=draw) for s in settings for draw in range(DRAWS)]
        again = [s._replace(threads=threads) for s in settings for threads in (1, None, 4)]
        more = self._stock.run(program, changed + again * LOOKS)["outcomes"]
        noisy = [more[k * DRAWS : (k + 1) * DRAWS] for k in range(len(settings))]
        meanings = wanted + more[len(changed) :]
        own = None
        for meaning in meanings:
            own = own or difference(wanted[0], meaning, limit, noisy[0])
        for k, setting in enumerate(settings):
            found = difference(wanted[k], got[k], limit, noisy[k])
            like_tensorflow = own and any(
                difference(meaning, got[k], limit, noisy[k]) is None for meaning in meanings
            )
            if found and not like_tensorflow:
                with_or_without = "with" if setting.optimized else "without"
                text = f"{with_or_without} TensorFlow's optimizers, {found[1]}"
                return Verdict(program, found[0], text, rewritten, wanted[1].get("error"))
        kind, text = (OWN, own[1]) if own else (None, "")
        return Verdict(program, kind, text, rewritten, wanted[1].get("error"))


class Verdict(collections.namedtuple("Verdict", "program kind text rewritten error")):
    """What came of a program.

    Attributes:
      program: The program.
      kind: A kind of `comparison.KINDS`, `OWN`, "invalid" if it is no graph, or None: all is well.
      text: What is different.
      rewritten: How many nodes of each op the rewrites put into its graphs.
      error: The error of TensorFlow alone, if it has one.
    """

    @property
    def is_finding(self):
        return self.kind not in (None, OWN)


def _patiently(worker, program, outcomes):
    """Outcomes where what hangs did so for long: a machine may be busy."""
    if all(outcome.get("error") != "DeadlineExceededError" for outcome in outcomes):
        return outcomes
    settings = [setting._replace(timeout=4 * MILLISECONDS) for setting in SETTINGS]
    return worker.run(program, settings)["outcomes"]


def _of_types(program, numbers):
    """The largest number of the types that a program has."""
    return max(numbers[node["dtype"]] for node in program["nodes"] if node["dtype"] in numbers)
