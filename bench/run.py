"""Measures what the command line asks for."""

import datetime
import shlex
import sys
from typing import Dict, List, NamedTuple

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench import machine, memory, report, shapes
from bench.tables import OPS, encode
from bench.workers import Worker


class Found(NamedTuple):
    """All that was measured."""

    title: str
    mode: str
    """Empty, or "random" or "linear", which choose the shapes."""
    about: dict
    """Date, command, machine, versions, instruction set."""
    limits: Dict[int, machine.Limits]
    """By the number of threads."""
    rows: List[report.Row]
    peaks: List[memory.Peak]
    left_out: List[str]
    """Ops that the library has no kernel for."""


def new_progress(console):
    """A progress bar."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
    )


def circumstances(program):
    """When, by which command and where a measurement is made."""
    words = ["python", "-m", program, *sys.argv[1:]]
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "command": " ".join(map(shlex.quote, words)),  # shlex.join is not in Python 3.7
        "machine": machine.describe(),
    }


def at(threads):
    """A number of threads, in words."""
    return f"{threads} thread{'s' if threads > 1 else ''}"


def chosen_cases(arguments):
    """The title, the mode of `Found` and the cases that the command line asks for."""
    chosen = (arguments.ops, arguments.dtypes, arguments.peephole)
    if arguments.random:
        sample = shapes.random_cases(*chosen, arguments.random, arguments.seed)
        return "Stock and ours at random shapes", "random", sample
    if arguments.linear:
        return "Stock and ours, time over rows", "linear", shapes.linear_cases(*chosen)
    single = arguments.shapes or shapes.USUAL[False]
    everything = "all" in single
    sequences = arguments.sequences or (["all"] if everything else shapes.USUAL[True])
    lists = {
        False: shapes.ALL[False] if everything else single,
        True: shapes.ALL[True] if "all" in sequences else sequences,
    }
    return "Stock and ours, side by side", "", shapes.cases(*chosen, lists)


def measure(arguments, console):
    """Measures all cases at all numbers of threads, and the machine before and after.

    Returns:
      What was `Found`.

    Raises:
      WorkerError, MachineError: It cannot be measured.
    """
    title, mode, cases = chosen_cases(arguments)
    about = circumstances("bench")
    with new_progress(console) as progress:
        bar = progress.add_task("the machine's limits", total=None)
        before = machine.measure_limits(arguments.threads)
        results, left_out = [], {}
        for number, threads in enumerate(arguments.threads):
            with Worker("bench.worker") as worker:
                job = {
                    "threads": threads,
                    "library": arguments.library,
                    "seconds": arguments.seconds,
                    "seed": arguments.seed,
                }
                about.update(worker.ask(job))
                there = [case for case in cases if _has(about, case.op)]
                left_out = dict.fromkeys(c.op.name for c in cases if not _has(about, c.op))
                progress.update(bar, total=len(there) * len(arguments.threads))
                for done, case in enumerate(there, number * len(there)):
                    description = f"{case}, {at(threads)}"
                    progress.update(bar, description=description, completed=done)
                    results.append((case, threads, worker.ask({"case": encode(case)})))
        peaks = _measure_memory(arguments, about, progress)
        progress.update(bar, description="the machine's limits again", completed=len(results))
        after = machine.measure_limits(arguments.threads)
        progress.update(bar, description="measured")
    limits = {threads: before[threads].best_of(after[threads]) for threads in arguments.threads}
    rows = [
        report.make_row(case, threads, result, limits[threads]) for case, threads, result in results
    ]
    return Found(title, mode, about, limits, rows, peaks, list(left_out))


def _has(about, op):
    """Whether the library has all kernels of an op."""
    return {kernel.name for kernel in op.kernels} <= set(about["ops"])


def _measure_memory(arguments, about, progress):
    """The `Peak`s of the training step, if it is asked for and there are kernels for it."""
    wanted = arguments.memory and memory.OP in arguments.ops
    if not wanted or not _has(about, OPS[memory.OP]):
        return []
    bar = progress.add_task("memory of a training step", total=2 * len(arguments.threads))
    return [
        peak
        for threads in arguments.threads
        for peak in memory.measure(
            arguments.memory, threads, arguments.library, lambda: progress.advance(bar)
        )
    ]
