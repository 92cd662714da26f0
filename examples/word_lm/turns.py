"""Trains a model on stock kernels and on the library's, in processes that take turns."""

import contextlib
import itertools
import json
import re
from typing import Any, NamedTuple, Tuple

import numpy as np
import text
from common import probes, sessions
from common.workers import Worker
from results import LIMIT, Result, Side

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


class Contender(NamedTuple):
    """A way to train a model, in a process of its own."""

    name: str
    """In the names of its log and in messages."""
    title: str
    """What people call the model."""
    loads: str
    """What the process loads, see `common.sessions`."""
    trainer: Any
    """The class that trains, such as `training.Trainer`."""
    arguments: Tuple[Any, ...]
    """What it is made of, before `loads`, the library and the threads."""
    limit: float = LIMIT
    """The largest relative difference of losses that passes."""


def compare(contenders, library, plan, words, logs, done):
    """Trains a model in several ways.

    Args:
      contenders: List of `Contender`. The first one trains on stock kernels; it is what the others
        are compared with.
      library: Path of libblockcell.so.
      plan: The `Plan`.
      words: The text, as of `text.words`.
      logs: Folder for what the processes write.
      done: A function that is called with the loss after each round.

    Returns:
      A list with a `results.Result` for each contender but the first.
    """
    with contextlib.ExitStack() as stack:
        workers = []
        for it in contenders:
            arguments = (*it.arguments, it.loads, library, plan.threads)
            worker = Worker(it.name, logs / f"{it.name}.log", it.trainer, *arguments)
            workers.append(stack.enter_context(worker))
        sizes = [worker.ask("sizes") for worker in workers]
        first = sizes[0]
        source = itertools.cycle(text.windows(words, first.vocabulary, first.batch, first.time))
        steps = _take_turns(workers, source, plan, done)
        traces = _trace(workers, source) if contenders[0].trainer.TRACES else [[] for _ in workers]
        ready = [worker.ask("ready") for worker in workers]
    sides = [_side(its, plan, traced) for its, traced in zip(steps, traces)]
    return [_result(contenders[k], plan, sizes, ready, sides, k) for k in range(1, len(contenders))]


def _result(contender, plan, sizes, ready, sides, k):
    """Returns the `results.Result` of contender k, from what each has said and done."""
    info = json.loads(next(its.info for its in ready if its.info))
    failures, our_ops = [], sizes[k].ops
    if contender.loads != sessions.TENSORFLOW:
        failures += probes.wrong_kernels(ready[0], ready[k], sizes[0].ops, our_ops)
    result = Result(
        graph=contender.title,
        tensorflow=ready[k].tensorflow,
        library=f"{info['version']} ({info['isa']})",
        threads=plan.threads,
        words=sizes[0].batch * sizes[0].time,
        stock=sides[0],
        ours=sides[k],
        failures=failures,
    )
    failures += _wrong_training(result, sizes[0].ops, our_ops, contender)
    return result


def _take_turns(workers, source, plan, done):
    """Returns the `training.Step`s of each worker."""
    steps = [[] for _ in workers]
    for turn in range(plan.turns):
        windows = list(itertools.islice(source, plan.steps))
        for place in range(len(workers)):
            which = (turn + place) % len(workers)  # each goes first in its turn
            steps[which].extend(workers[which].ask("steps", windows))
        done(steps[0][-1].loss)
    return steps


def _trace(workers, source):
    """Returns the counted `sessions.Trace`s of each worker, which take turns here, too."""
    traces = [[] for _ in workers]
    for window in itertools.islice(source, TRACED):
        for worker, its in zip(workers, traces):
            _, trace = worker.ask("trace", window)
            its.append(trace)
    return [its[1:] for its in traces]


def _side(steps, plan, traces):
    """Returns the `results.Side` of the steps and traces, if any, of one worker."""
    seconds = np.array([step.seconds for step in steps]).reshape(plan.turns, plan.steps)
    return Side(
        losses=[step.loss for step in steps],
        rounds=[float(value) for value in np.median(seconds[1:], axis=1)],
        span=float(np.median([trace.span for trace in traces])) if traces else 0.0,
        ops=_times([trace.ops for trace in traces]) if traces else {},
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


def _wrong_training(result, stock_ops, our_ops, contender):
    """Yields what is wrong with a result's losses and traces, a line each."""
    sides = (("stock", result.stock, stock_ops), ("blockcell", result.ours, our_ops))
    for name, side, ops in sides:
        for op in ops:
            if side.ops and op not in side.ops:
                yield f"{result.graph}: no {op} ran with {name}"
    is_ours = contender.loads != sessions.TENSORFLOW
    if is_ours and not our_ops and not any(op.startswith("Blockcell") for op in result.ours.ops):
        yield f"{result.graph}: nothing ran on the library's kernels"
    limit = contender.limit
    if not result.difference <= limit:  # NaN must fail, too
        yield (f"{result.graph}: the losses differ by {result.difference:.1e} (limit {limit:.0e})")
