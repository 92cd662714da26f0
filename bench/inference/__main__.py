"""The command line of the comparison of inference."""

import argparse
import sys
from pathlib import Path

from bench import tables
from bench.inference import nets
from bench.options import positive
from bench.turns import Sides
from blockcell.bench.report import rich_table
from blockcell.bench.run import at, circumstances
from blockcell.bench.workers import WorkerError
from blockcell.cli.console import new_console, new_progress

RIVALS = ["layer", "tensorflow"]
COLUMNS = ("cell", "shape", *tables.COLUMNS)
NOTE = (
    "Shapes are time, batch, input size and units. Median milliseconds of a call, of processes "
    "that took turns; median and quartiles of the ratios rival/ours of single rounds. Others: "
    "cores that other processes used meanwhile."
)


def main():
    """Runs the comparison."""
    parser = argparse.ArgumentParser(prog="python -m bench.inference", description=__doc__)
    add = parser.add_argument
    add("--threads", nargs="+", type=positive(int), default=[1, 2], metavar="N")
    add("--seconds", type=positive(float), default=4.0, help="time for the rounds of a row")
    add("--library", metavar="FILE", help="libblockcell.so to measure")
    add("--output", type=Path, default=Path("build") / "bench", metavar="FOLDER")
    add("--seed", type=int, default=20191018, help="of the inputs (default: %(default)s)")
    arguments = parser.parse_args()
    console = new_console()
    about = dict(circumstances("python", "-m", "bench.inference"), versions={})
    rows = []
    try:
        with new_progress(console) as progress:
            measure(arguments, about, rows, progress)
    except WorkerError as error:
        sys.exit(f"bench.inference: {error}")
    title = "Frozen graphs in TensorFlow {tensorflow}".format(**about["versions"])
    table = (COLUMNS, list(map(cells, rows)), 2)
    console.print(rich_table(title, *table, NOTE))
    name = "inference-{tensorflow}".format(**about["versions"])
    tables.write(arguments.output / name, about, rows, table, NOTE)


def measure(arguments, about, rows, progress):
    """Measures all nets at all numbers of threads, and adds a row for each rival of each."""
    bar = progress.add_task("", total=len(nets.NETS) * len(arguments.threads))
    for threads in arguments.threads:
        job = {"threads": threads, "library": arguments.library}
        with Sides("bench.inference.worker", ["ours", *RIVALS], job) as sides:
            sides.describe(about)
            for net in nets.NETS:
                progress.update(bar, description=f"{net}, {at(threads)}")
                turns = sides.take_turns(
                    net, ["ours", *RIVALS], arguments.seconds, arguments.seed, nets.LARGEST_ERROR
                )
                rows += [tables.row(net, threads, rival, turns) for rival in RIVALS]
                progress.advance(bar)


def cells(row):
    """What the tables show of a row, in the order of `COLUMNS`."""
    net = nets.Net(**{name: row[name] for name in nets.Net._fields})
    return [net.cell, net.shape, *tables.cells(row)]


if __name__ == "__main__":
    main()
