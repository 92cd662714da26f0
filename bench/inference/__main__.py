"""The command line of the comparison of inference."""

import argparse
import importlib.util
import sys

from bench import tables
from bench.inference import nets
from bench.options import add_turns
from blockcell.cli.console import new_console, new_progress
from blockcell_tools.bench.report import rich_table
from blockcell_tools.bench.run import at, circumstances
from blockcell_tools.bench.turns import Sides
from blockcell_tools.bench.workers import WorkerError

RIVALS = ["layer", "unrewritten", "tensorflow"]
ALLOWED = 1.15
"""How many times as long as layers by hand a loop may take that was rewritten."""
COLUMNS = ("cell", "form", "rewritten", "shape", *tables.COLUMNS)
NOTE = (
    "Rewritten: nodes that the library put into our graph. Shapes are time, batch, input size and "
    "units. Median milliseconds of a call, of processes that took turns; median and quartiles of "
    "the ratios rival/ours of single rounds. Others: cores that other processes used meanwhile."
)


def main():
    """Runs the comparison."""
    parser = argparse.ArgumentParser(prog="python -m bench.inference", description=__doc__)
    add = parser.add_argument
    forms = list(dict.fromkeys(net.form for net in nets.NETS))
    # TensorFlow 1.15 has its Keras inside, and cannot load what Keras 3 exports.
    usual = [form for form in forms if form != nets.KERAS3 or importlib.util.find_spec("keras")]
    kinds = ["lstm", "gru", "both"]
    add("--cells", nargs="+", choices=kinds, default=kinds)
    add("--forms", nargs="+", choices=forms, default=usual, metavar="FORM", help=f"of {forms}")
    add("--rivals", nargs="+", choices=RIVALS, default=RIVALS, help="default: all")
    add_turns(parser, seconds=4.0)
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
    table = (COLUMNS, list(map(cells, rows)), 4)
    slow = [row["rival"] == "layer" and row["ratio"] < 1 / ALLOWED for row in rows]
    console.print(rich_table(title, *table, NOTE, ["red" if it else None for it in slow]))
    longest = max((1 / row["ratio"] for row in rows if row["rival"] == "layer"), default=None)
    if longest:
        console.print(
            f"Ours takes up to {longest:.2f} times as long as layers by hand (allowed: {ALLOWED})."
        )
    name = "inference-{tensorflow}".format(**about["versions"])
    tables.write(arguments.output / name, about, rows, table, NOTE)


def measure(arguments, about, rows, progress):
    """Measures all nets at all numbers of threads, and adds a row for each rival of each."""
    wanted = [
        net for net in nets.NETS if net.cell in arguments.cells and net.form in arguments.forms
    ]
    names = ["ours", *arguments.rivals]
    bar = progress.add_task("", total=len(wanted) * len(arguments.threads))
    for threads in arguments.threads:
        job = {"threads": threads, "library": arguments.library}
        with Sides("bench.inference.worker", names, job) as sides:
            sides.describe(about)
            for net in wanted:
                progress.update(bar, description=f"{net}, {at(threads)}")
                # The layers of a SavedModel are not written by hand.
                here = [name for name in names if (net.form, name) != (nets.KERAS2, "layer")]
                turns = sides.take_turns(
                    net, here, arguments.seconds, arguments.seed, nets.LARGEST_ERROR
                )
                rewritten = sides.abouts["ours"]["rewritten"]
                rows += [
                    dict(tables.row(net, threads, rival, turns), rewritten=rewritten)
                    for rival in here[1:]
                ]
                progress.advance(bar)


def cells(row):
    """What the tables show of a row, in the order of `COLUMNS`."""
    net = nets.Net(**{name: row[name] for name in nets.Net._fields})
    rewritten = ", ".join(f"{n} {short(op)}" for op, n in row["rewritten"].items())
    return [net.cell, net.form, rewritten, net.shape, *tables.cells(row)]


def short(op):
    """The name of an op without that of the library."""
    return op[len("Blockcell") :] if op.startswith("Blockcell") else op


if __name__ == "__main__":
    main()
