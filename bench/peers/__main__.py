"""The command line of the comparison with Keras, PyTorch and ONNX Runtime."""

import argparse
import os
import sys
from pathlib import Path

from bench.options import positive
from bench.peers import nets, report
from blockcell.cli.console import new_console, new_progress
from blockcell_tools.bench import machine, shapes
from blockcell_tools.bench.rows import RowFile, RowsError
from blockcell_tools.bench.run import at, best_limits, circumstances
from blockcell_tools.bench.turns import Sides, Turns
from blockcell_tools.bench.workers import WorkerError


def main():
    """Runs the comparison."""
    arguments = parse_arguments()
    console = new_console()
    try:
        found = measure(arguments, console)
    except (WorkerError, machine.MachineError, RowsError) as error:
        sys.exit(f"bench.peers: {error}")
    if found.left_out:
        console.print(f"Left out, the library has no kernel: {', '.join(found.left_out)}")
    if not found.rows:
        sys.exit("bench.peers: nothing to measure with these layers and shapes")
    report.print_tables(console, found)
    folder = arguments.output
    folder.mkdir(parents=True, exist_ok=True)
    names = report.write(folder, f"peers-{found.about['isa']}", found)
    console.print(f"Written to {os.path.relpath(str(folder))}: {', '.join(names)}", soft_wrap=True)


def parse_arguments(words=None):
    """Parses the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.peers",
        description="Times our sequence kernels, TensorFlow's, and those of Keras, PyTorch and "
        "ONNX Runtime, in processes that take turns. BLOCKCELL_ISA in the environment holds for "
        "our kernels and for the machine's limits.",
    )
    add = parser.add_argument
    add("--layers", nargs="+", choices=list(nets.GATES), default=list(nets.GATES))
    add("--work", nargs="+", choices=nets.WORKS, default=nets.WORKS, help="default: all")
    add(
        "--sequences",
        nargs="+",
        type=_sequences,
        metavar="TxBxC",
        help="time, batch and cell size, or TxBxDxC, or a set: usual (six, 20x20x200 to "
        "100x64x512) or inference (eleven, 50x1x64 to 100x64x512) (default: usual, and inference "
        "for that work)",
    )
    add(
        "--rivals",
        nargs="+",
        choices=list(dict.fromkeys(name for names in nets.RIVALS.values() for name in names)),
        default=None,
        help="default: all",
    )
    add("--threads", nargs="+", type=positive(int), default=[1, 2], metavar="N")
    add(
        "--seconds",
        type=positive(float),
        default=2.0,
        help="time for the rounds of a row (default: %(default)s)",
    )
    add("--library", metavar="FILE", help="libblockcell.so to measure (default: as for bench)")
    add(
        "--output",
        type=Path,
        default=Path("build") / "bench",
        metavar="FOLDER",
        help="where JSON, Markdown and the plot go (default: build/bench)",
    )
    add("--seed", type=int, default=20191018, help="of the inputs (default: %(default)s)")
    add(
        "--resume",
        action="store_true",
        help="keep the rows that an interrupted run of the same options has left in the folder",
    )
    arguments = parser.parse_args(words)
    arguments.threads = sorted(set(arguments.threads))
    wanted = arguments.sequences and [shape for some in arguments.sequences for shape in some]
    arguments.nets = [
        nets.Net(kind, work, *shape)
        for kind in arguments.layers
        for work in arguments.work
        for shape in wanted or SETS["inference" if work == nets.INFERENCE else "usual"]
    ]
    if any(
        net.work == nets.INFERENCE and net.input_size != net.cell_size for net in arguments.nets
    ):
        parser.error(f"--work {nets.INFERENCE} takes inputs as wide as the cell only")
    return arguments


SETS = {"usual": shapes.USUAL[True], "inference": shapes.INFERENCE}
"""Named sets of shapes."""


def _sequences(text):
    """A type of argument: shapes of sequences."""
    try:
        return SETS.get(text) or [shapes.sequence_shape(text)]
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def measure(arguments, console):
    """Measures all nets at all numbers of threads, and the machine before and after.

    Returns:
      What was `bench.peers.report.Found`.

    Raises:
      WorkerError, MachineError: It cannot be measured.
    """
    wanted = arguments.nets
    about = dict(circumstances("python", "-m", "bench.peers"), versions={})
    rows_file, results, left_out = None, [], {}
    with new_progress(console) as progress:
        bar = progress.add_task("the machine's limits", total=len(wanted) * len(arguments.threads))
        before = machine.measure_limits(arguments.threads)
        for threads in arguments.threads:
            job = {"threads": threads, "library": arguments.library}
            with Sides("bench.peers.worker", _names(arguments), job) as sides:
                sides.describe(about)
                rows_file = rows_file or _open_rows(arguments, about)
                for net in wanted:
                    progress.update(bar, description=f"{net}, {at(threads)}")
                    if _have(sides, net):
                        turns = _measured(rows_file, sides, net, threads, arguments)
                        results.append((net, threads, turns))
                    else:
                        left_out[net.case.op.name] = True
                    progress.advance(bar)
        progress.update(bar, description="the machine's limits again")
        after = machine.measure_limits(arguments.threads)
        progress.update(bar, description="measured")
    limits = best_limits(before, after)
    rows = [
        report.make_row(net, threads, turns, limits.get(threads)) for net, threads, turns in results
    ]
    return report.Found(about, limits, rows, list(left_out))


def _names(arguments):
    """The sides to start."""
    having = dict.fromkeys(name for net in arguments.nets for name in net.sides)
    return [name for name in having if name in ("ours", *(arguments.rivals or having))]


def _have(sides, net):
    """Whether the library has the kernels of a net."""
    ours = set(sides.abouts["ours"]["ops"])
    return {kernel.name for kernel in net.case.op.kernels} <= ours


def _open_rows(arguments, about):
    """The file that keeps the rows, with those of an earlier run if they are to be kept."""
    how = {
        **{key: about[key] for key in ("versions", "isa")},
        "machine": {key: about["machine"][key] for key in ("cpu", "cores", "system")},
        **{key: getattr(arguments, key) for key in ("library", "rivals", "seconds", "seed")},
    }
    path = arguments.output / f"peers-{about['isa']}.rows.jsonl"
    return RowFile(path, how, arguments.resume)


def _measured(rows_file, sides, net, threads, arguments):
    """The turns of a row: from the file if it has them, else measured, and written to it."""
    key = [list(net), threads]
    kept = rows_file.get(key)
    if kept is not None:
        return Turns(**kept)
    turns = sides.take_turns(net, net.sides, arguments.seconds, arguments.seed, nets.LARGEST_ERROR)
    rows_file.add(key, turns._asdict())
    return turns


if __name__ == "__main__":
    main()
