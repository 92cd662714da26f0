"""Processes that run cases, and tables of what came of them."""

import collections
import concurrent.futures
import json
import os
import subprocess
import sys
from pathlib import Path

from robustness.judging import DIED, HANDLED, SILENT, UNCLEAR

TESTS = Path(__file__).resolve().parent.parent
PATHS = [TESTS.parent.parent / "python", TESTS]
PROCESSES = 2


class Job(collections.namedtuple("Job", "is_ours mode")):
    """What a process does: whose kernels it calls, and in which way."""

    __slots__ = ()

    def __str__(self):
        return "{}, {}".format("blockcell" if self.is_ours else "TensorFlow's kernels", self.mode)


def jobs(is_tensorflow_1):
    """All jobs of a TensorFlow. Eager mode of 1.15 never runs the library's kernels."""
    graphs = [Job(True, mode) for mode in ("session", "known shapes")]
    if is_tensorflow_1:
        return [*graphs, Job(False, "session")]
    return [*graphs, Job(True, "eager"), Job(True, "function"), Job(False, "eager")]


def run(some_jobs, python=sys.executable, share=1, ops=()):
    """Runs jobs, some at a time; returns what `worker.run` found for each."""
    with concurrent.futures.ThreadPoolExecutor(PROCESSES) as pool:
        found = [pool.submit(_run, job, python, share, list(ops)) for job in some_jobs]
        return dict(zip(some_jobs, (one.result() for one in found)))


def _run(job, python, share, ops):
    variables = dict(
        os.environ,
        TF_CPP_MIN_LOG_LEVEL="3",
        OPENBLAS_NUM_THREADS="1",  # The process forks.
        PYTHONPATH=os.pathsep.join(map(str, PATHS)),
    )
    variables.pop("BLOCKCELL_OVERRIDE", None)
    request = {"mode": job.mode, "is_ours": job.is_ours, "ops": ops, "share": share}
    process = subprocess.run(
        [python, "-m", "robustness.worker", json.dumps(request)],
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode:
        raise RuntimeError(f"{job}: the process failed\n{process.stderr[-4000:]}")
    return {op: (collections.Counter(n), shown) for op, (n, shown) in _last_line(process).items()}


def _last_line(process):
    return json.loads(process.stdout.splitlines()[-1])


def failures(found):
    """Descriptions of all cases that were not handled, of what `worker.run` found."""
    return [text for _, shown in found.values() for text in shown]


def is_good(found):
    """Whether every case was handled."""
    return all(set(counts) <= {HANDLED} for counts, _ in found.values())


def table(found):
    """A table in Markdown: a line for each op, and one for all.

    Args:
      found: What `run` returned.
    """
    ours, stock = (
        {
            op: sum((one[op][0] for one in some if op in one), collections.Counter())
            for op in dict.fromkeys(op for one in some for op in one)
        }
        for some in (
            [one for job, one in found.items() if job.is_ours is is_ours]
            for is_ours in (True, False)
        )
    )
    lines = [
        "| op | cases | handled | deaths | silent | unclear | TensorFlow's kernel: cases | handled "
        "| deaths | silent |",
        "|---|" + "--:|" * 9,
    ]
    none = collections.Counter()
    rows = [(op, ours.get(op, none), stock.get(op)) for op in {**ours, **stock}]
    rows.append(("all", sum(ours.values(), collections.Counter()), _sum(stock)))
    for op, counts, theirs in rows:
        cells = [sum(counts.values()), *(counts[w] for w in (HANDLED, DIED, SILENT, UNCLEAR))]
        cells += ["", "", "", ""] if theirs is None else _cells_of_stock(theirs)
        lines.append("| {} | {} |".format(op, " | ".join(map(str, cells))))
    return "\n".join(lines)


def _sum(counters):
    return sum(counters.values(), collections.Counter()) if counters else None


def _cells_of_stock(counts):
    return [sum(counts.values()), *(counts[word] for word in (HANDLED, DIED, SILENT))]
