"""Trains a graph on stock kernels and on the library's, in two processes that take turns."""

import contextlib
import itertools
import json
import re
from typing import NamedTuple

import models
import numpy as np
import text
from common import probes, sessions
from common.workers import Worker
from results import LIMIT, Result, Side
from training import Trainer

TRACED = 4
"""Steps that are traced after the measured ones; the first of them is not counted."""


class Plan(NamedTuple):
    """How much to train."""

    threads: int
    """Size of TensorFlow's pool within ops, and of its pool across ops."""
    rounds: int
    """Turns of each process that are counted. One more comes first and is not."""
    steps: int
    """Training steps of a turn."""

    @property
    def turns(self):
        """All turns of a process."""
        return self.rounds + 1


def compare(path, library, plan, words, logs, done):
    """Trains a graph on both kernels.

    Args:
      path: The graph's file.
      library: Path of libblockcell.so.
      plan: The `Plan`.
      words: The text, as of `text.words`.
      logs: Folder for what the processes write.
      done: A function that is called with the loss after each round.

    Returns:
      A `results.Result`.
    """
    with contextlib.ExitStack() as stack:
        workers = []
        for name, loads in (("stock", sessions.TENSORFLOW), ("ours", sessions.LIBRARY)):
            full = f"{models.stem(path)}-{name}"
            arguments = (path, loads, library, plan.threads)
            worker = Worker(full, logs / f"{full}.log", Trainer, *arguments)
            workers.append(stack.enter_context(worker))
        sizes, _ = (worker.ask("sizes") for worker in workers)
        windows = text.windows(words, sizes.vocabulary, sizes.batch, sizes.time)
        source = itertools.cycle(windows)
        steps = _take_turns(workers, source, plan, done)
        traces = _trace(workers, source)
        stock_ready, our_ready = (worker.ask("ready") for worker in workers)
    sides = [_side(steps[which], plan, traces[which]) for which in (0, 1)]
    failures = list(probes.wrong_kernels(stock_ready, our_ready, sizes.ops, sizes.ops))
    info = json.loads(our_ready.info)
    result = Result(
        graph=models.title(path),
        tensorflow=our_ready.tensorflow,
        library=f"{info['version']} ({info['isa']})",
        threads=plan.threads,
        words=sizes.batch * sizes.time,
        stock=sides[0],
        ours=sides[1],
        failures=failures,
    )
    failures += _wrong_training(result, sizes.ops)
    return result


def _take_turns(workers, source, plan, done):
    """Returns the `training.Step`s of each worker."""
    steps = ([], [])
    for turn in range(plan.turns):
        windows = list(itertools.islice(source, plan.steps))
        order = (0, 1) if turn % 2 == 0 else (1, 0)  # each goes first in its turn
        for which in order:
            steps[which].extend(workers[which].ask("steps", windows))
        done(steps[0][-1].loss)
    return steps


def _trace(workers, source):
    """Returns the counted `sessions.Trace`s of each worker, which take turns here, too."""
    traces = ([], [])
    for window in itertools.islice(source, TRACED):
        for worker, its in zip(workers, traces):
            _, trace = worker.ask("trace", window)
            its.append(trace)
    return [its[1:] for its in traces]


def _side(steps, plan, traces):
    """Returns the `results.Side` of the steps and traces of one worker."""
    seconds = np.array([step.seconds for step in steps]).reshape(plan.turns, plan.steps)
    return Side(
        losses=[step.loss for step in steps],
        rounds=[float(value) for value in np.median(seconds[1:], axis=1)],
        span=float(np.median([trace.span for trace in traces])),
        ops=_times([trace.ops for trace in traces]),
    )


def _times(traced):
    """Returns the calls and the median seconds of each type of op."""
    merged = [_without_mkl(ops) for ops in traced]
    return {
        op: (calls, float(np.median([ops.get(op, (0, 0.0))[1] for ops in merged])))
        for op, (calls, _) in merged[0].items()
    }


def _without_mkl(ops):
    """Returns calls and seconds by the types of ops in the graph.

    TensorFlow 2 puts oneDNN's ops in their place, such as ``_MklMatMul``.
    """
    result = {}
    for op, (calls, seconds) in ops.items():
        op = re.sub(r"^_Mkl(Native)?", "", op)
        before = result.get(op, (0, 0.0))
        result[op] = (before[0] + calls, before[1] + seconds)
    return result


def _wrong_training(result, ops):
    """Yields what is wrong with a result's losses and traces, a line each."""
    for name, side in (("stock", result.stock), ("blockcell", result.ours)):
        for op in ops:
            if op not in side.ops:
                yield f"{result.graph}: no {op} ran with {name}"
    if not result.difference <= LIMIT:  # NaN must fail, too
        yield (f"{result.graph}: the losses differ by {result.difference:.1e} (limit {LIMIT:.0e})")
