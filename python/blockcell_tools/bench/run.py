"""Measures what the command line asks for."""

import datetime
import functools
import shlex
import sys
from typing import Dict, List, NamedTuple, Sequence

from blockcell.cli.console import new_progress
from blockcell_tools import graph_nodes
from blockcell_tools.bench import machine, memory, report, shapes
from blockcell_tools.bench.report import at
from blockcell_tools.bench.rows import open_rows
from blockcell_tools.bench.tables import OPS, encode
from blockcell_tools.bench.workers import Worker


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
    packed: Sequence[memory.Packed] = ()


def circumstances(*program):
    """When, by which command, of which commit and where a measurement is made."""
    given = sys.argv[2:] if program[-1] == "bench" else sys.argv[1:]
    words = [*program, *given]
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "command": " ".join(map(shlex.quote, words)),  # shlex.join is not in Python 3.7
        "commit": machine.commit(),
        "machine": machine.describe(),
    }


def chosen_cases(arguments):
    """The title, the mode of `Found` and the cases that the command line asks for."""
    chosen = (arguments.ops, arguments.dtypes, arguments.peephole)
    if arguments.graph:
        return f"Stock and ours, the calls of {arguments.graph}", "graph", _of_graph(arguments)
    if arguments.random:
        sample = shapes.random_cases(*chosen, arguments.random, arguments.seed)
        return "Stock and ours at random shapes", "random", sample
    if arguments.linear:
        return "Stock and ours, time over rows", "linear", shapes.linear_cases(*chosen)
    single = arguments.shapes or shapes.USUAL[False]
    everything = "all" in single
    sequences = arguments.sequences or (["all"] if everything else shapes.USUAL[True])
    lists = {False: shapes.named(single, False), True: shapes.named(sequences, True)}
    return "Stock and ours, side by side", "", shapes.cases(*chosen, lists)


def _of_graph(arguments):
    """The cases of a graph's nodes, each once."""
    found = []
    for node in graph_nodes.read(arguments.graph):
        call = graph_nodes.case_of(node, arguments.batch, arguments.time)
        if call is not None and call.op in OPS and call.op in arguments.ops:
            case = shapes.workload_of_call(call)
            if case not in found:
                found.append(case)
    return found


def measure(arguments, console):
    """Measures all cases at all numbers of threads, and the machine before and after.

    Returns:
      What was `Found`.

    Raises:
      WorkerError, MachineError: It cannot be measured.
    """
    title, mode, cases = chosen_cases(arguments)
    about = circumstances("blockcell", "bench")

    def work(progress, bar):
        rows_file, results, left_out = None, [], {}
        for number, threads in enumerate(arguments.threads):
            with Worker("blockcell_tools.bench.worker") as worker:
                about.update(worker.ask(_job(arguments, threads)))
                if rows_file is None:
                    where = (arguments.output, stem(about, mode))
                    rows_file = open_rows(*where, about, arguments, ("library", "seconds", "seed"))
                there = [case for case in cases if has(about, case.op)]
                left_out = dict.fromkeys(c.op.name for c in cases if not has(about, c.op))
                progress.update(bar, total=len(there) * len(arguments.threads))
                for done, case in enumerate(there, number * len(there)):
                    description = f"{case}, {at(threads)}"
                    progress.update(bar, description=description, completed=done)
                    fields = encode(case)
                    ask = functools.partial(worker.ask, {"case": fields})
                    results.append((case, threads, rows_file.measured([fields, threads], ask)))
        progress.update(bar, completed=len(results))
        return (results, left_out, *_measure_memory(arguments, about, progress))

    (results, left_out, peaks, packed), limits = between_limits(arguments.threads, console, work)
    rows = [
        report.make_row(case, threads, result, limits.get(threads))
        for case, threads, result in results
    ]
    return Found(title, mode, about, limits, rows, peaks, list(left_out), packed)


def between_limits(threads, console, work):
    """Measures the machine's limits before and after some work.

    Args:
      threads: Numbers of threads.
      console: Decides whether a bar is shown.
      work: Given the `rich.progress.Progress` and its bar, does it.

    Returns:
      What `work` returns, and the better of both measurements by the number of threads; empty if
      there are none.

    Raises:
      MachineError: The limits cannot be measured.
    """
    with new_progress(console) as progress:
        bar = progress.add_task("the machine's limits", total=None)
        before = machine.measure_limits(threads)
        found = work(progress, bar)
        progress.update(bar, description="the machine's limits again")
        after = machine.measure_limits(threads)
        progress.update(bar, description="measured")
    if before is None or after is None:
        return found, {}
    return found, {number: before[number].best_of(after[number]) for number in before}


def _job(arguments, threads):
    return {
        "threads": threads,
        "library": arguments.library,
        "seconds": arguments.seconds,
        "seed": arguments.seed,
    }


def stem(about, mode):
    """The first part of the names of all files that a run writes."""
    minor = ".".join(about["versions"]["tensorflow"].split(".")[:2])
    return f"tf-{minor}-{about['isa']}" + (f"-{mode}" if mode else "")


def has(about, op):
    """Whether the library has all kernels of an op."""
    return {kernel.name for kernel in op.kernels} <= set(about["ops"])


def _measure_memory(arguments, about, progress):
    """The `Peak`s of the training step, and what is `Packed`, if asked for and with kernels."""
    wanted = arguments.memory and memory.OP in arguments.ops
    if not wanted or not has(about, OPS[memory.OP]):
        return [], []
    bar = progress.add_task("memory", total=3 * len(arguments.threads))

    def advance():
        progress.advance(bar)

    peaks, packed = [], []
    for threads in arguments.threads:
        peaks += memory.measure(arguments.memory, threads, arguments.library, advance)
        packed.append(memory.measure_packed(arguments.memory, threads, arguments.library))
        advance()
    return peaks, packed
