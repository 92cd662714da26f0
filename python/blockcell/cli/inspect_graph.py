"""`blockcell inspect`."""

import sys
from concurrent.futures import ThreadPoolExecutor

import click

from blockcell.cli.console import (
    CommandError,
    import_tensorflow,
    new_console,
    new_progress,
    quiet_tensorflow,
    say,
    table,
    waiting,
)
from blockcell.cli.options import (
    batch_option,
    json_option,
    quiet_option,
    report_option,
    target_option,
    time_option,
    write_json,
)

_COLUMNS = ("node", "op", "type and options", "shape", "device", "runs on", "us: stock", "us: ours")
_NOTE = (
    "shape: time x batch x input_size x cell_size, ? if the graph does not fix a size. us: "
    "microseconds of a call on one thread, with --batch and --time in place of these sizes."
)


@click.command("inspect")
@click.argument("file")
@batch_option
@time_option
@target_option
@click.option("--measure/--no-measure", default=True, show_default=True, help="Time the calls.")
@click.option("--seconds", default=0.2, show_default=True, help="Seconds per different call.")
@click.option(
    "--require", is_flag=True, help="Exit with 1 if a block RNN node would not run on the kernels."
)
@json_option
@report_option
@quiet_option
def command(file, batch, time, targets, measure, seconds, require, as_json, report, quiet):
    """List the block RNN and cuDNN nodes of a graph, what runs them, and their time.

    Also list what the graph passes rewrite, both the products around these nodes and plain cells,
    and what they do not rewrite and why.

    FILE is a GraphDef or MetaGraph, binary or as text, a SavedModel (its folder), or a Keras file
    (.keras, .h5), whose layers are listed as the calls that they become.
    """
    quiet_tensorflow()
    console = new_console(quiet or as_json)
    progress = waiting(console, "reading the graph")
    # The plan's process and this one both import TensorFlow, which takes longer than all else.
    with progress, ThreadPoolExecutor(1) as beside:
        planned = beside.submit(_plan, file, targets)
        import_tensorflow()
        from blockcell_tools import graph_nodes, graph_plan

        nodes = graph_nodes.read(file)
        places = planned.result()
        cases = [graph_nodes.case_of(node, batch, time) for node in nodes]
    costs = _measure(cases, seconds, console) if measure else {}
    found = [_describe(graph_nodes, *both, costs) for both in zip(nodes, cases)]
    passes = [place._asdict() for place in places]
    write_json({"nodes": found, "graph_passes": passes}, as_json, report)
    if found:
        _print_nodes(console, file, found, any(place.becomes for place in places))
    else:
        console.print(f"{file} has no nodes of block RNN or cuDNN ops.", highlight=False)
    for line in graph_plan.lines(places):
        say(console, line)
    if require:
        _require(file, found, places, sys.stderr if as_json else sys.stdout)


def _require(file, found, places, output):
    """Ends the command with 1 if a node would not run on the kernels, or nothing would."""
    missed = [one for one in found if one["why_not"]]
    for one in missed:
        line = f"blockcell: {one['name']} would not run on the kernels: {one['why_not']}"
        print(line, file=output)
    if not found and not any(place.becomes for place in places):
        print(f"blockcell: nothing in {file} would run on the kernels", file=output)
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
        return "Keras's own path does not use these kernels: blockcell compare times it."
    if has_passes:
        return "These times do not include the gain of the graph passes."
    return ""


def _grouped(lines):
    """The lines of nodes that differ in their names only, as one line each."""
    names = {}
    from blockcell_tools import graph_plan

    for name, *rest in lines:
        names.setdefault(tuple(rest), []).append(name)
    for rest, together in names.items():
        yield [graph_plan.and_more(together), *rest]


def _plan(file, targets):
    from blockcell_tools import graph_plan, keras_nodes

    if keras_nodes.is_file(file):
        return []  # Its layers call the kernels themselves.

    try:
        return graph_plan.read(file, targets)
    except graph_plan.PlanError as error:
        raise CommandError(f"TensorFlow does not accept the graph in {file}: {error}") from error


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
