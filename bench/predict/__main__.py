"""The command line of the comparison of Keras's `predict`."""

import argparse
import sys

from bench import tables
from bench.options import add_turns
from bench.predict import nets
from blockcell.cli.console import new_console, new_progress
from blockcell_tools.bench.report import geometric_mean, rich_table
from blockcell_tools.bench.run import at, circumstances
from blockcell_tools.bench.turns import Sides
from blockcell_tools.bench.workers import WorkerError

COLUMNS = ("layer", "call", "shape", *tables.COLUMNS)
NOTE = (
    "Shapes are time, batch, input size and units. Median milliseconds a batch, of processes that "
    f"took turns; a call of predict has {nets.BATCHES} batches. Median and quartiles of the ratios "
    "rival/ours of single rounds. Others: cores that other processes used meanwhile."
)


def main():
    """Runs the comparison."""
    parser = argparse.ArgumentParser(prog="python -m bench.predict", description=__doc__)
    add_turns(parser, seconds=2.0)
    arguments = parser.parse_args()
    console = new_console()
    about = dict(circumstances("python", "-m", "bench.predict"), versions={})
    rows = []
    try:
        with new_progress(console) as progress:
            measure(arguments, about, rows, progress)
    except WorkerError as error:
        sys.exit(f"bench.predict: {error}")
    title = "Keras {keras} in TensorFlow {tensorflow}".format(**about["versions"])
    table = (COLUMNS, list(map(cells, rows)), 3)
    console.print(rich_table(title, *table, NOTE))
    ratios = [row["ratio"] for row in rows]
    console.print(f"Mean of the ratios: {geometric_mean(ratios):.2f}, least {min(ratios):.2f}.")
    name = "predict-{tensorflow}".format(**about["versions"])
    tables.write(arguments.output / name, about, rows, table, NOTE)


def measure(arguments, about, rows, progress):
    """Measures all nets at all numbers of threads, and adds a row for each."""
    bar = progress.add_task("", total=len(nets.NETS) * len(arguments.threads))
    for threads in arguments.threads:
        job = {"threads": threads, "library": arguments.library}
        names = ("ours", "keras")
        with Sides("bench.predict.worker", names, job) as sides:
            sides.describe(about)
            for net in nets.NETS:
                progress.update(bar, description=f"{net}, {at(threads)}")
                turns = sides.take_turns(
                    net, names, arguments.seconds, arguments.seed, nets.LARGEST_ERROR
                )
                rows.append(tables.row(net, threads, "keras", turns))
                progress.advance(bar)


def cells(row):
    """What the tables show of a row, in the order of `COLUMNS`."""
    net = nets.Net(**{name: row[name] for name in nets.Net._fields})
    return [net.cell, net.call, net.shape, *tables.cells(row)]


if __name__ == "__main__":
    main()
