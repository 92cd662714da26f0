"""`blockcell inspect`."""

import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor

import click

from blockcell.cli.console import (
    CommandError,
    and_more,
    import_tensorflow,
    new_console,
    new_progress,
    quiet_tensorflow,
    say,
    table,
    waiting,
)

_COLUMNS = ("node", "op", "type and options", "shape", "device", "runs on", "us: stock", "us: ours")
_NOTE = (
    "shape: time x batch x input_size x cell_size, ? where the graph leaves it open. us: "
    "microseconds of a call on one thread, with the sizes of --batch and --time where it does."
)


@click.command("inspect")
@click.argument("file")
@click.option("--batch", default=32, show_default=True, help="Where the graph leaves it open.")
@click.option("--time", default=35, show_default=True, help="Where the graph leaves it open.")
@click.option("--target", multiple=True, help="A step is what this operation needs.")
@click.option("--measure/--no-measure", default=True, show_default=True, help="Time the calls.")
@click.option("--seconds", default=0.2, show_default=True, help="Time for each different call.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--require", is_flag=True, help="Exit with 1 if a block RNN node would not run on the kernels."
)
@click.option("--quiet", is_flag=True, help="Show no progress.")
def command(file, batch, time, target, measure, seconds, as_json, require, quiet):
    """List the block RNN and cuDNN nodes of a graph: what runs them, what they cost, and gain.

    Then say what the graph passes put in place of the products around them, and of plain cells, and
    what they leave.

    FILE is a GraphDef or MetaGraph, binary or as text, a SavedModel (its folder), or a file of
    Keras's (.keras, .h5), whose layers are listed as the calls that they become.
    """
    quiet_tensorflow()
    console = new_console()
    progress = waiting(new_console(quiet or as_json), "reading the graph")
    # The plan's process and this one both import TensorFlow, which takes longer than all else.
    with progress, ThreadPoolExecutor(1) as beside:
        planned = beside.submit(_plan, file, target)
        import_tensorflow()
        from blockcell_tools import graph_nodes

        nodes = graph_nodes.read(file)
        places = planned.result()
        cases = [graph_nodes.case_of(node, batch, time) for node in nodes]
    costs = _measure(cases, seconds, new_console(quiet or as_json)) if measure else {}
    found = [_describe(graph_nodes, *both, costs) for both in zip(nodes, cases)]
    if as_json:
        passes = [place._asdict() for place in places]
        print(json.dumps({"nodes": found, "graph_passes": passes}, indent=1))
    else:
        if found:
            _print_nodes(console, file, found, any(place.becomes for place in places))
        else:
            console.print(f"{file} has no nodes of block RNN or cuDNN ops.", highlight=False)
        for line in _lines(places):
            say(console, line)
    if require:
        _require(file, found, places)


def _require(file, found, places):
    """Ends the command with 1 if a node would not run on the kernels, or nothing would."""
    missed = [one for one in found if one["why_not"]]
    for one in missed:
        print(f"blockcell: {one['name']} would not run on the kernels: {one['why_not']}")
    if not found and not any(place.becomes for place in places):
        print(f"blockcell: nothing in {file} would run on the kernels")
        missed = [file]
    if missed:
        sys.exit(1)


def _print_nodes(console, file, found, has_passes):
    console.print(table(file, _COLUMNS, _grouped([_cells(one) for one in found]), 6, _NOTE))
    for reason in sorted({one["why_not"] for one in found if one["why_not"]}):
        say(console, f"Not on blockcell: {reason}")
    measured = [one for one in found if one["ours_seconds"] and one["runs_on"] == "blockcell"]
    if measured:
        stock, ours = (
            sum(one[key] for one in measured) for key in ("stock_seconds", "ours_seconds")
        )
        say(
            console,
            f"One call of each node on blockcell: {stock * 1e6:,.0f} us by TensorFlow's kernels, "
            f"{ours * 1e6:,.0f} us by ours ({stock / ours:.2f} times as fast). "
            + _left_out(file, has_passes),
        )


def _left_out(file, has_passes):
    """What the times of single calls do not tell."""
    from blockcell_tools import keras_nodes

    if keras_nodes.is_file(file):
        return "Keras's own path does not use these kernels: blockcell bench --model times it."
    if has_passes:
        return "A step gains more, because these times leave out what the graph passes do."
    return ""


def _grouped(lines):
    """The lines of nodes that differ in their names only, as one line each."""
    names = {}
    for name, *rest in lines:
        names.setdefault(tuple(rest), []).append(name)
    for rest, together in names.items():
        yield [and_more(together), *rest]


def _plan(file, targets):
    from blockcell_tools import graph_plan, keras_nodes

    if keras_nodes.is_file(file):
        return []  # Its layers call the kernels themselves.

    try:
        return graph_plan.read(file, targets)
    except graph_plan.PlanError as error:
        raise CommandError(f"TensorFlow does not accept the graph in {file}: {error}") from error


def _lines(places):
    """What the graph passes do, equal things together."""
    groups = {}
    for place in places:
        reason = re.sub(r"\S*[/_]\S*", "", place.reason or "")  # Without the names of nodes.
        groups.setdefault((place.becomes, place.parts, reason), []).append(place)
    for group in groups.values():
        place, names = group[0], and_more([each.name for each in group])
        if place.becomes is None:
            yield f"Stays: {names}: {place.reason}"
        else:
            but = f"; no more, because {place.reason}" if place.reason else ""
            yield f"Becomes {place.becomes} of {place.parts}: {names}{but}"


def _describe(graph_nodes, node, case, costs):
    sizes = graph_nodes.sizes_of(node)
    why_not = graph_nodes.why_not(node)
    stock, ours = costs.get(str(case), (None, None))
    return {
        **node._asdict(),
        "sizes": sizes,
        "runs_on": "TensorFlow" if why_not else "blockcell",
        "why_not": why_not,
        "stock_seconds": stock,
        "ours_seconds": ours,
    }


def _cells(one):
    order = ("time", "batch", "input_size", "cell_size")
    sizes = [one["sizes"][name] for name in order if name in one["sizes"]]
    options = [one["dtype"], *(f"{key}={_short(v)}" for key, v in one["attributes"].items())]
    where = f"{one['function']}: " if one["function"] else ""
    return [
        where + one["name"],
        one["op"],
        ", ".join(options),
        "x".join("?" if size is None else str(size) for size in sizes),
        one["device"] or "-",
        one["runs_on"],
        *(_microseconds(one[key]) for key in ("stock_seconds", "ours_seconds")),
    ]


def _short(value):
    return f"{value:g}" if isinstance(value, float) else str(value)


def _microseconds(seconds):
    return "-" if seconds is None else f"{seconds * 1e6:,.1f}"


def _measure(cases, seconds, console):
    """Seconds of a call by either side's kernel on one thread, by the case in words."""
    import numpy as np

    from blockcell_tools.bench.shapes import workload_of_call
    from blockcell_tools.bench.tables import OPS, encode
    from blockcell_tools.bench.workers import Worker, WorkerError

    calls = {str(case): case for case in cases if case is not None and case.op in OPS}
    costs = {}
    if not calls:
        return costs
    try:
        with Worker("blockcell_tools.bench.worker") as worker, new_progress(console) as progress:
            bar = progress.add_task("timing", total=len(calls))
            worker.ask({"threads": 1, "library": None, "seconds": seconds, "seed": 1})
            for words, case in calls.items():
                progress.update(bar, description=words)
                result = worker.ask({"case": encode(workload_of_call(case))})
                costs[words] = tuple(float(np.median(result[side])) for side in ("stock", "ours"))
                progress.advance(bar)
    except WorkerError as error:
        raise CommandError(f"{error} (or use --no-measure)") from error
    return costs
