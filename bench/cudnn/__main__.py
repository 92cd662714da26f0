"""The command line of the comparison for networks made for cuDNN."""

import argparse
import importlib.util
import itertools
import sys

from bench import tables
from bench.cudnn import nets
from bench.options import add_turns
from blockcell.cli.console import new_console, new_progress
from blockcell_tools.bench.report import geometric_mean, rich_table
from blockcell_tools.bench.run import at, circumstances
from blockcell_tools.bench.shapes import sequence_shape
from blockcell_tools.bench.turns import Sides
from blockcell_tools.bench.workers import WorkerError

NEEDS = {"cells": "tensorflow_core", "torch": "torch"}
"""A module that each rival comes with; `tensorflow_core` is in TensorFlow 1.15 alone."""
SHAPES = ["20x20x200", "100x20x200", "35x20x650", "100x64x512"]
STACKS = [(1, 1), (2, 2)]
COLUMNS = ("network", "work", "shape", *tables.COLUMNS)
NOTE = (
    "Median milliseconds of a call, of processes that took turns; median and quartiles of the "
    "ratios rival/ours of single rounds. Others: cores that other processes used meanwhile."
)


def main():
    """Runs the comparison."""
    arguments = parse_arguments()
    rivals = arguments.rivals or [name for name in NEEDS if importlib.util.find_spec(NEEDS[name])]
    if not rivals:
        sys.exit("bench.cudnn: neither TensorFlow 1.15 nor PyTorch is here")
    console = new_console()
    about = dict(circumstances("python", "-m", "bench.cudnn"), versions={})
    rows = []
    try:
        with new_progress(console) as progress:
            measure(arguments, rivals, about, rows, progress)
    except WorkerError as error:
        sys.exit(f"bench.cudnn: {error}")
    table = (COLUMNS, list(map(cells, rows)), 3)
    console.print(rich_table("Networks made for cuDNN", *table, NOTE))
    for rival in rivals:
        ratios = [row["ratio"] for row in rows if row["rival"] == rival]
        console.print(
            f"{rival}: geometric mean {geometric_mean(ratios):.2f}, lowest {min(ratios):.2f}"
        )
    tables.write(arguments.output / f"cudnn-{'-'.join(rivals)}", about, rows, table, NOTE)


def parse_arguments(words=None):
    """Parses the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.cudnn", description=__doc__)
    add = parser.add_argument
    works = [nets.FORWARD, nets.TRAINING]
    add("--modes", nargs="+", choices=["lstm", "gru"], default=["lstm", "gru"])
    add("--work", nargs="+", choices=works, default=works, help="default: both")
    add(
        "--sequences",
        nargs="+",
        type=sequence_shape,
        default=[sequence_shape(shape) for shape in SHAPES],
        metavar="TxBxC",
        help="time, batch and units, or TxBxDxC",
    )
    add("--rivals", nargs="+", choices=list(NEEDS), help="default: those that are installed")
    add_turns(parser, seconds=4.0)
    return parser.parse_args(words)


def measure(arguments, rivals, about, rows, progress):
    """Measures all networks at all numbers of threads, and adds a row for each rival of each."""
    wanted = [
        nets.Net(mode, work, *stack, *shape)
        for mode, work, stack, shape in itertools.product(
            arguments.modes, arguments.work, STACKS, arguments.sequences
        )
    ]
    bar = progress.add_task("", total=len(wanted) * len(arguments.threads))
    for threads in arguments.threads:
        job = {"threads": threads, "library": arguments.library}
        with Sides("bench.cudnn.worker", ["ours", *rivals], job) as sides:
            sides.describe(about)
            for net in wanted:
                progress.update(bar, description=f"{net}, {at(threads)}")
                turns = sides.take_turns(
                    net, ["ours", *rivals], arguments.seconds, arguments.seed, nets.LARGEST_ERROR
                )
                rows += [tables.row(net, threads, rival, turns) for rival in rivals]
                progress.advance(bar)


def cells(row):
    """What the tables show of a row, in the order of `COLUMNS`."""
    net = nets.Net(**{name: row[name] for name in nets.Net._fields})
    return [f"{net.mode} {net.layers}x{net.directions}", net.work, net.shape, *tables.cells(row)]


if __name__ == "__main__":
    main()
