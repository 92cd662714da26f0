"""Times several clients that call an op at once: TensorFlow's kernel and ours."""

import functools
import json
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import numpy as np

from blockcell.cli.console import new_progress
from blockcell_tools.bench import machine, report, shapes
from blockcell_tools.bench.clients import Service, service
from blockcell_tools.bench.graphs import CALLABLE, SESSION_RUN
from blockcell_tools.bench.report import at
from blockcell_tools.bench.rows import open_rows
from blockcell_tools.bench.run import circumstances, has, stem
from blockcell_tools.bench.tables import OPS, decode, encode
from blockcell_tools.bench.turns import at_all_threads

TITLE = "Several clients at once, stock and ours"
MODULE, SIDES = "blockcell_tools.bench.client_side", ("ours", "stock")
NAMES = ("library", "seconds", "seed", "inter_op")
"""Arguments that have to be the same for rows to be comparable."""
CALLERS = (SESSION_RUN, CALLABLE)
SHAPES = (shapes.Shape(50, 8, 256, 256), shapes.Shape(50, 1, 128, 128))
"""Sequences unless told otherwise."""
USUAL_OP = "BlockLSTM"
"""The op unless told otherwise."""
FORWARD = tuple(name for name, op in OPS.items() if len(op.kernels) == 1 and "Grad" not in name)
"""Ops that can be called: those of inference."""
NOTHING = "nothing"
"""A graph that returns what it is fed: what TensorFlow takes for a call itself."""
NOTE = (
    "Calls a second of all clients, the median of the rounds; in brackets the milliseconds within "
    "which 50 and 99 of 100 calls were answered. Ratio of the calls per second: median and "
    "quartiles of single rounds; marked by ! where others used cores that the row needs. Nothing: "
    "the same 50 of a graph that returns what it is fed."
)
"""What the columns mean."""
COLUMNS = (
    *("call", "by", "threads", "clients", "stock: /s (p50, p99)", "ours: /s (p50, p99)"),
    *("ratio", "nothing"),
)
"""Heads of the table of `Row`s."""
_TEXTS = 2


class Calls(NamedTuple):
    """Calls of several clients; each feeds an `x` of its own, and all else is in the graph."""

    case: Tuple[Any, ...]
    """As `blockcell_tools.bench.tables.encode` makes it."""
    clients: int
    caller: str
    """One of `CALLERS`."""
    is_nothing: bool = False
    """Whether the graph returns x."""

    @property
    def op(self):
        """The `blockcell_tools.bench.ops.Op`, or None."""
        return None if self.is_nothing else decode(self.case).op

    @property
    def largest_error(self):
        """How much answers of different kernels may differ, relative to the largest element."""
        return decode(self.case).largest_error

    @property
    def attributes(self):
        """The op's."""
        return {"use_peephole": decode(self.case).use_peephole}

    def arrays(self, seed):
        """The op's inputs, and those of the clients."""
        return of_clients(decode(self.case).inputs(seed), self.clients, seed)

    def values(self, arrays):
        """Of these, the op's inputs."""
        return {name: array for name, array in arrays.items() if name != "clients"}


def of_clients(arrays, clients, seed):
    """A dictionary of arrays with one more: `clients`, such as its `x`, for each."""
    random = np.random.RandomState(seed + 1)
    x = arrays["x"]
    return dict(arrays, clients=random.uniform(-1.0, 1.0, (clients, *x.shape)).astype(x.dtype))


class Row(NamedTuple):
    """The result for an op, a number of threads and a number of clients."""

    case: Any
    caller: str
    threads: int
    clients: int
    services: Dict[str, Service]
    """By side: "stock" and "ours", and `NOTHING`."""
    ratio: float
    """How many times as many calls per second ours has: the median of the ratios of rounds."""
    quartiles: Tuple[float, float]
    """Of these ratios."""
    neighbours: Optional[float]
    """Cores that other processes used meanwhile, if known."""
    rounds: int
    error: float
    """The largest scaled difference of stock's answers from ours."""

    def disturbed(self) -> bool:
        """Whether other processes left noticeably fewer cores than the row has threads."""
        return report.disturbed(self.neighbours, self.threads)

    def named(self) -> str:
        """What it measured, in words."""
        return f"{self.case}, {at(self.threads)}, {self.clients} clients, {self.caller}"

    def cells(self) -> List[str]:
        """What the tables show of it, in the order of `COLUMNS`."""
        case = self.case
        variant = "" if case.variant == "float32" else case.variant + " "
        return [
            f"{case.op.name} {variant}{case.shape}",
            *(self.caller, str(self.threads), str(self.clients)),
            *("{} ({}, {})".format(*self.services[side].cells()) for side in SIDES[::-1]),
            report.with_quartiles(self.ratio, self.quartiles) + "!" * self.disturbed(),
            f"{1e3 * self.services[NOTHING].p50:.3g}",
        ]


class Found(NamedTuple):
    """All that was measured."""

    about: Dict[str, Any]
    rows: List[Row]
    left_out: List[str]
    """Ops that the library has no kernel for."""


def measure(arguments, console):
    """Measures all ops and shapes, for each number of threads and of clients.

    Args:
      arguments: Of the command line.
      console: Decides whether a bar is shown.

    Returns:
      What was `Found`.

    Raises:
      WorkerError, RowsError: It cannot be measured.
    """
    about = dict(circumstances("blockcell", "bench"), versions={})
    nets = _nets(arguments)
    left_out = {}
    with new_progress(console) as progress:
        bar = progress.add_task("", total=len(nets) * len(arguments.threads))

        def advance(words, count):
            progress.update(bar, description=words, advance=count)

        rows = list(_rows(arguments, nets, about, left_out, advance))
    return Found(about, rows, list(left_out))


def _nets(arguments):
    """The `Calls` that the command line asks for."""
    steps, sequences = arguments.shapes or [], arguments.sequences or []
    if not steps and not sequences:
        sequences = SHAPES
    chosen = (arguments.ops, arguments.dtypes, arguments.peephole or [False])
    lists = {False: shapes.named(steps, False), True: shapes.named(sequences, True)}
    return [
        Calls(tuple(encode(case)), clients, caller)
        for case in shapes.cases(*chosen, lists)
        for caller in CALLERS
        for clients in arguments.clients
    ]


def _rows(arguments, nets, about, left_out, advance):
    """Yields the rows; adds to the description, and to what is left out."""
    rows_file = None
    options = (arguments.threads, arguments.library, about)
    job = {"inter_op": arguments.inter_op}
    for net, threads, sides in at_all_threads(MODULE, SIDES, nets, *options, **job):
        if rows_file is None:
            where = (arguments.output, stem(about, "clients"))
            rows_file = open_rows(*where, about, arguments, NAMES)
        advance(f"{decode(net.case)}, {at(threads)}, {net.clients} clients", 0)
        if has(sides.abouts["ours"], net.op):
            how = (SIDES, arguments.seconds, arguments.seed)
            measure = functools.partial(measured, sides, net, *how)
            yield row_of(net, threads, rows_file.measured([list(net), threads], measure))
        else:
            left_out[net.op.name] = True
        advance(None, 1)


def measured(sides, net, names, seconds, seed):
    """Measures calls by several clients, and those of a graph that returns what it is fed.

    Args:
      sides: The `blockcell_tools.bench.turns.Sides`.
      net: `Calls`, or what has the same names.
      names: The sides that take part, "stock" among them.
      seconds: Time for the rounds.
      seed: Of the inputs.

    Returns:
      What `Sides.serve` returns, with `NOTHING` among the loads.
    """
    loads, errors = sides.serve(net, names, seconds, seed, net.largest_error)
    nothing = net._replace(is_nothing=True)
    alone, _ = sides.serve(nothing, ("stock",), seconds / 4, seed, 0.0)
    return {"loads": {**loads, NOTHING: alone["stock"]}, "errors": errors}


def row_of(net, threads, found):
    """The `Row` of what `measured` returns."""
    loads = found["loads"]
    ratio, quartiles = ratio_of(loads, "stock")
    return Row(
        case=decode(net.case),
        caller=net.caller,
        threads=threads,
        clients=net.clients,
        services={name: service(some) for name, some in loads.items()},
        ratio=ratio,
        quartiles=quartiles,
        neighbours=neighbours_of(loads),
        rounds=len(loads["ours"]),
        error=found["errors"]["stock"],
    )


def ratio_of(loads, rival):
    """How many times as many calls per second ours has: median and quartiles of the rounds."""
    ours, theirs = ([one["rate"] for one in loads[side]] for side in ("ours", rival))
    return report.ratio_quartiles(ours, theirs)


def neighbours_of(loads):
    """Cores that other processes used during loads by side, if known."""
    return machine.cores_of([one["spent"] for some in loads.values() for one in some])


def _table(found):
    return COLUMNS, [row.cells() for row in found.rows], _TEXTS


def print_tables(console, found):
    """Prints the results."""
    styles = ["red" if row.ratio < 1.0 else None for row in found.rows]
    sections = [(row.case, row.threads, row.caller) for row in found.rows]
    console.print(report.rich_table(TITLE, *_table(found), NOTE, styles, sections))


def as_json(found):
    """Everything that was measured, for JSON; times in seconds."""
    rows = []
    for row in found.rows:
        fields = dict(row.case._asdict(), **row._asdict())
        del fields["case"]
        fields.update(op=row.case.op.name, disturbed=row.disturbed())
        fields["services"] = {side: one._asdict() for side, one in row.services.items()}
        rows.append(fields)
    return dict(found.about, title=TITLE, rows=rows, left_out=found.left_out)


def write(folder, found, console):
    """Writes JSON and Markdown, named after what was measured; the console is told."""
    name = stem(found.about, "clients")
    content = json.dumps(as_json(found), indent=1) + "\n"
    (folder / (name + ".json")).write_text(content, encoding="utf-8")
    table = report.markdown_table(*_table(found))
    parts = [f"# {TITLE}", *report.where_and_when(found.about), table, NOTE]
    (folder / (name + ".md")).write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    names = ", ".join(name + ending for ending in (".json", ".md", ".rows.jsonl"))
    console.print(f"Written to {folder}: {names}", soft_wrap=True)
