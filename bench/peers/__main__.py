"""The command line of the comparison with Keras, PyTorch and ONNX Runtime."""

import argparse
import math
import os
import sys

import numpy as np

from bench.comparison import new_parser, positive
from bench.nets import LARGEST_ERROR
from bench.peers import blocks, clients, nets, report
from blockcell.cli.console import new_console
from blockcell_tools.bench import machine, shapes
from blockcell_tools.bench.report import at
from blockcell_tools.bench.rows import RowsError, open_rows
from blockcell_tools.bench.run import between_limits, circumstances, has
from blockcell_tools.bench.turns import Turns, at_all_threads
from blockcell_tools.bench.workers import WorkerError
from blockcell_tools.reference.inputs import scaled_error

PROGRAM = "bench.peers"


def main():
    """Runs the comparison."""
    arguments = parse_arguments()
    console = new_console()
    if arguments.clients:
        clients.run(PROGRAM, arguments, console)
        return
    try:
        found = measure(arguments, console)
    except (WorkerError, machine.MachineError, RowsError) as error:
        sys.exit(f"{PROGRAM}: {error}")
    if found.left_out:
        console.print(f"Left out, because the library has no kernel: {', '.join(found.left_out)}")
    if not found.rows:
        sys.exit(f"{PROGRAM}: nothing to measure with these layers and shapes")
    report.print_tables(console, found)
    folder = arguments.output
    folder.mkdir(parents=True, exist_ok=True)
    names = report.write(folder, f"peers-{found.about['isa']}", found)
    console.print(f"Written to {os.path.relpath(str(folder))}: {', '.join(names)}", soft_wrap=True)


def parse_arguments(words=None):
    """Parses the command line."""
    parser = new_parser(
        PROGRAM,
        "Times our sequence kernels, TensorFlow's, and those of Keras, PyTorch and ONNX Runtime, "
        "in processes that take turns. BLOCKCELL_ISA in the environment holds for our kernels and "
        "for the machine's limits.",
        seconds=2.0,
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
        "for inference, serving, changing and int8)",
    )
    add(
        "--rivals",
        nargs="+",
        choices=list(dict.fromkeys([*sum(nets.RIVALS.values(), ()), *clients.RIVALS])),
        default=None,
        help="default: all",
    )
    add(
        "--clients",
        nargs="+",
        type=positive(int),
        metavar="K",
        help="instead: inference by so many clients at once, each answer checked: calls per "
        "second, p50 and p99 (sequences 50x8x256 and 50x1x128 unless told otherwise)",
    )
    add(
        "--inter-op",
        type=int,
        default=0,
        metavar="N",
        help="with --clients: inter_op_parallelism_threads of TensorFlow's session; -1 runs each "
        "call in its client's own thread (default: TensorFlow's)",
    )
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
        for shape in wanted or SETS["inference" if work in nets.CHAINED else "usual"]
    ]
    for net in arguments.nets:
        if net.work in nets.CHAINED and net.input_size != net.cell_size:
            parser.error(f"--work {net.work} takes inputs as wide as the cell only")
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
    about = dict(circumstances("python", "-m", PROGRAM), versions={})
    results, left_out = [], {}

    def work(progress, bar):
        progress.update(bar, total=len(arguments.nets) * len(arguments.threads))
        options = (arguments.nets, arguments.threads, arguments.library, about)
        rows_file = None
        for net, threads, sides in at_all_threads(f"{PROGRAM}.worker", _names(arguments), *options):
            if rows_file is None:
                where = (arguments.output, f"peers-{about['isa']}")
                names = ("library", "rivals", "seconds", "seed")
                rows_file = open_rows(*where, about, arguments, names)
            progress.update(bar, description=f"{net}, {at(threads)}")
            if has(sides.abouts["ours"], net.case.op):
                turns = _measured(rows_file, sides, net, threads, arguments)
                results.append((net, threads, turns))
            else:
                left_out[net.case.op.name] = True
            progress.advance(bar)

    _, limits = between_limits(arguments.threads, console, work)
    rows = [
        report.make_row(net, threads, turns, limits.get(threads)) for net, threads, turns in results
    ]
    return report.Found(about, limits, rows, list(left_out))


def _names(arguments):
    """The sides to start."""
    having = dict.fromkeys(name for net in arguments.nets for name in net.sides)
    return [name for name in having if name in ("ours", *(arguments.rivals or having))]


def _measured(rows_file, sides, net, threads, arguments):
    """The turns of a row: from the file if it has them, else measured, and written to it."""

    def measure():
        # In int8, each side is compared with float64: without VNNI, ONNX Runtime's sums saturate.
        largest = math.inf if net.work == nets.INT8 else LARGEST_ERROR
        options = (arguments.seconds, arguments.seed, largest)
        turns = sides.take_turns(net, net.sides, *options)._asdict()
        if net.work == nets.INT8 and net.kind == "LSTM":
            want = blocks.in_float64(net, net.arrays(arguments.seed))
            for side in turns["seconds"]:
                found = sides.results(side)["h"]
                mean = np.abs(found - want).mean() / np.abs(want).max()
                turns["errors"][f"{side}{report.LARGEST}"] = scaled_error(found, want)
                turns["errors"][f"{side}{report.MEAN}"] = float(mean)
            ours = turns["errors"][f"ours{report.LARGEST}"]
            if ours > nets.LARGEST_ERROR_OF_INT8:
                raise WorkerError(
                    f"{net}: h of ours differs from float64 by {ours:.1e} of its largest element, "
                    f"allowed are {nets.LARGEST_ERROR_OF_INT8:.1e}"
                )
        return turns

    return Turns(**rows_file.measured([list(net), threads], measure))


if __name__ == "__main__":
    main()
