"""Several clients that call a layer at once: ours, TensorFlow's, ONNX Runtime's and OpenVINO's."""

import json
import sys
from typing import NamedTuple

from bench.nets import LARGEST_ERROR
from bench.peers.blocks import ATTRIBUTES, op_inputs
from bench.peers.nets import INFERENCE, Net
from blockcell.cli.console import new_progress
from blockcell_tools.bench import client_rows
from blockcell_tools.bench.client_rows import NOTHING, measured, neighbours_of, of_clients
from blockcell_tools.bench.clients import service
from blockcell_tools.bench.graphs import CALLABLE
from blockcell_tools.bench.report import (
    at,
    disturbed,
    markdown_table,
    rich_table,
    where_and_when,
    with_quartiles,
)
from blockcell_tools.bench.run import circumstances
from blockcell_tools.bench.turns import at_all_threads
from blockcell_tools.bench.workers import WorkerError

TITLE = "Several clients at once: ours, TensorFlow's block op, ONNX Runtime and OpenVINO"
MODULE = "bench.peers.client_worker"
RIVALS = ("stock", "onnxruntime", "openvino")
NOTE = (
    "Calls a second of all clients, the median of the rounds; milliseconds within which 50 and 99 "
    "of 100 calls were answered. Ratio of the calls per second, ours/rival: median and quartiles "
    "of single rounds, marked by ! where other processes used cores that the row needs. "
    "TensorFlow is called by make_callable; nothing is a graph of it that returns what it is fed."
)
"""What the columns mean."""
COLUMNS = ("layer", "threads", "clients", "side", "calls/s", "p50 ms", "p99 ms", "ratio")
"""Heads of the table."""


class Calls(NamedTuple):
    """Calls of several clients, each with an `x` of its own, on one layer for inference.

    It has the names of `blockcell_tools.bench.client_rows.Calls`.
    """

    kind: str
    time: int
    batch: int
    input_size: int
    cell_size: int
    clients: int
    is_nothing: bool = False

    @property
    def net(self):
        """The layer."""
        return Net(self.kind, INFERENCE, *self[1:5])

    @property
    def largest_error(self):
        """How much answers of different sides may differ, relative to the largest element."""
        return LARGEST_ERROR

    @property
    def op(self):
        """TensorFlow's, or None."""
        return None if self.is_nothing else self.net.case.op

    @property
    def attributes(self):
        """The op's."""
        return ATTRIBUTES

    @property
    def caller(self):
        """How TensorFlow is called."""
        return CALLABLE

    @property
    def sides(self):
        """Who has the layer; TensorFlow has no op for a sequence of a GRU."""
        return ("ours", *(name for name in RIVALS if self.kind == "LSTM" or name != "stock"))

    def arrays(self, seed):
        """Weights and inputs, those of the clients among them."""
        return of_clients(self.net.arrays(seed), self.clients, seed)

    def values(self, arrays):
        """The inputs of TensorFlow's op."""
        return op_inputs(self.net, arrays)


def run(program, arguments, console):
    """Measures, prints and writes.

    Args:
      program: The module that the command line runs.
      arguments: Those of the command line.
      console: Where to print.
    """
    about = dict(circumstances("python", "-m", program), versions={})
    try:
        with new_progress(console) as progress:
            rows = list(_rows(arguments, about, progress))
    except WorkerError as error:
        sys.exit(f"{program}: {error}")
    lines = [cells for row in rows for cells in _cells(row)]
    sections = [cells[:3] for cells in lines]
    console.print(rich_table(TITLE, COLUMNS, lines, 1, NOTE, sections=sections))
    stem = f"clients-{about['isa']}"
    arguments.output.mkdir(parents=True, exist_ok=True)
    content = json.dumps(dict(about, title=TITLE, rows=rows), indent=1) + "\n"
    (arguments.output / (stem + ".json")).write_text(content, encoding="utf-8")
    parts = [f"# {TITLE}", *where_and_when(about), markdown_table(COLUMNS, lines, 1), NOTE]
    (arguments.output / (stem + ".md")).write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    console.print(f"Written to {arguments.output}: {stem}.json, {stem}.md", soft_wrap=True)


def _rows(arguments, about, progress):
    """Yields the rows, as dictionaries; times in seconds."""
    wanted = [shape for some in arguments.sequences or [client_rows.SHAPES] for shape in some]
    nets = [
        Calls(kind, *shape, clients)
        for kind in arguments.layers
        for shape in wanted
        for clients in arguments.clients
    ]
    names = ("ours", *(arguments.rivals or RIVALS))
    started = dict.fromkeys([*names, "stock"])
    job = {"inter_op": arguments.inter_op}
    bar = progress.add_task("", total=len(nets) * len(arguments.threads))
    options = (nets, arguments.threads, arguments.library, about)
    for net, threads, sides in at_all_threads(MODULE, started, *options, **job):
        progress.update(bar, description=f"{net.kind} {net.net.case.shape}, {at(threads)}")
        here = [name for name in net.sides if name in names]
        yield _row(net, threads, measured(sides, net, here, arguments.seconds, arguments.seed))
        progress.advance(bar)


def _row(net, threads, found):
    loads, fields = found["loads"], net._asdict()
    del fields["is_nothing"]
    rivals = [name for name in loads if name not in ("ours", NOTHING)]
    ratios = {name: client_rows.ratio_of(loads, name) for name in rivals}
    neighbours = neighbours_of(loads)
    return {
        **fields,
        "threads": threads,
        "services": {side: service(some)._asdict() for side, some in loads.items()},
        "ratios": {name: ratio for name, (ratio, _) in ratios.items()},
        "quartiles": {name: quartiles for name, (_, quartiles) in ratios.items()},
        "errors": found["errors"],
        "neighbours": neighbours,
        "disturbed": disturbed(neighbours, threads),
    }


def _cells(row):
    """The lines of the table for a row: one for each side."""
    shape = Calls(*(row[name] for name in Calls._fields[:6])).net.case.shape
    counts = [str(row[name]) for name in ("threads", "clients")]
    for name, found in row["services"].items():
        numbers = client_rows.Service(**found).cells()
        ratio = ""
        if name in row["ratios"]:
            ratio = with_quartiles(row["ratios"][name], row["quartiles"][name])
            ratio += "!" * row["disturbed"]
        yield [f"{row['kind']} {shape}", *counts, name, *numbers, ratio]
