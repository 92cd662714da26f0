"""`blockcell verify`."""

import collections
import sys
from pathlib import Path

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
    writing,
)
from blockcell.cli.options import (
    Listed,
    batch_option,
    choose_precision,
    choose_weights,
    json_option,
    precision_option,
    quiet_option,
    report_option,
    time_option,
    weights_option,
    write_json,
)
from blockcell.op_table import OPS
from blockcell_tools import cudnn_verification, verification

_COLUMNS = ("op", "kind", "type and options", "cases", "ours: worst", "of", "limit", "stock: worst")
_TYPES = {"float32": "float32", "half": "float16", "bfloat16": "bfloat16"}
_LIMITS = {"medium": 1e-2, "int8": 1e-1, "int8_except_x": 1e-1}
"""Scaled errors that levels of precision, and weights in int8, promise; that of the highest level
depends on the op."""
_MATRICES = ("w", "w_ru", "w_c", "params")
"""Weights that may be in int8."""
_NOTE = (
    "Scaled errors: the largest difference from the float64 reference, relative to the largest "
    "element. TensorFlow's own errors do not count."
)


@click.command("verify")
@click.option("--quick", is_flag=True, help="A few sizes of each op, in less than a minute.")
@click.option("--ops", metavar="OP,...", help="Ops to verify (default: all).")
@click.option(
    "--dtypes",
    type=Listed(click.Choice(list(_TYPES))),
    default=",".join(_TYPES),
    metavar="TYPE,...",
    help=f"Types: {', '.join(_TYPES)} (default: all).",
)
@click.option(
    "--graph",
    metavar="FILE",
    help="Verify the calls of this graph file, or of the layers in this Keras file, instead of a "
    "grid.",
)
@batch_option
@time_option
@precision_option
@weights_option
@click.option("--tolerance", type=float, metavar="X", help="Largest scaled error for all ops.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random inputs.")
@click.option("--library", metavar="FILE", help="The libblockcell.so to verify.")
@json_option
@report_option
@click.option("--junit", metavar="FILE", help="Write a JUnit report.")
@quiet_option
def command(
    quick,
    ops,
    dtypes,
    graph,
    batch,
    time,
    precision,
    weights,
    tolerance,
    seed,
    library,
    as_json,
    report,
    junit,
    quiet,
):
    """Check every kernel, forward and gradient, against TensorFlow's and a float64 reference.

    Runs TensorFlow's kernels and the library's in one process. The exit code is 0 if all errors of
    the library's outputs are within the limits, 1 if not, 2 if the check could not be run.
    """
    quiet_tensorflow()
    names = _ops(ops)
    console = new_console(quiet or as_json)
    with waiting(console, "loading TensorFlow and the library"):
        about = _load(library, precision, weights)
    left_out = []
    in_int8 = about["weights"] != "float32"
    if in_int8 and graph:
        raise CommandError("--graph does not support int8 weights: use blockcell compare")
    if graph:
        cases, left_out = _cases_of_graph(graph, batch, time, names)
    elif in_int8:
        cases = [
            *verification.int8_grid(names, quick),
            *cudnn_verification.int8_grid(names, quick),
        ]
        left_out = ["all ops except forward sequences in float32: int8 is not used there"]
    else:
        types = tuple(_TYPES[name] for name in dtypes)
        block_ops = [name for name in names if name in OPS]
        cases = [
            *verification.grid(block_ops, types, quick),
            *cudnn_verification.grid(names, types, quick),
        ]
    if not cases:
        raise CommandError(
            "nothing to verify with these ops and types: see blockcell verify --help"
        )
    results = []
    with new_progress(console) as progress:
        bar = progress.add_task("verifying", total=len(cases))
        for case in cases:
            progress.update(bar, description=case.op)
            kind = cudnn_verification if case.op in cudnn_verification.OPS else verification
            accepted = tolerance
            if tolerance is None and case.dtype == "float32":
                level = about["weights"] if in_int8 else about["float32_matmul_runs"]
                accepted = _LIMITS.get(level)
                if accepted and case.attributes.get("cell_clip"):
                    accepted *= 2  # A clip makes what errors are measured by smaller.
            constants = [_MATRICES] if in_int8 else []
            results.append(kind.check(case, seed, accepted, *constants))
            progress.advance(bar)
    failed = [result for result in results if result.problem is not None]
    _print(console, about, results, failed)
    for line in left_out:
        say(console, f"Left out: {line}")
    found = verification.as_json(results, dict(about, seed=seed, left_out=left_out))
    write_json(found, as_json, report)
    if junit:
        with writing(junit):
            Path(junit).write_text(verification.as_junit(results) + "\n", encoding="utf-8")
    if quiet or as_json:
        for result in failed:
            print(f"{result.case}: {result.problem}", file=sys.stderr)
    sys.exit(1 if failed else 0)


def _ops(text):
    known = (*OPS, *cudnn_verification.OPS)
    if not text:
        return known
    names = tuple(name.strip() for name in text.split(","))
    unknown = [name for name in names if name not in known]
    if unknown:
        raise CommandError(f"no such op: {', '.join(unknown)}; there are {', '.join(known)}")
    return names


def _load(library, precision, weights):
    import blockcell

    import_tensorflow()
    choose_weights(weights)
    blockcell.load(library, take_over=False)
    choose_precision(precision)
    info = blockcell.info()
    if info["taken_over"]:
        raise CommandError("the library has taken over stock kernels despite take_over=False")
    levels = ("float32_matmul_precision", "float32_matmul_runs")
    keys = ("version", "tensorflow_running", "isa", *levels, "weights", "library")
    return {key: info[key] for key in keys}


def _cases_of_graph(file, batch, time, names):
    """The different calls of a graph, and in words which nodes are left out and why."""
    from blockcell_tools import graph_nodes, graph_plan

    nodes = graph_nodes.read(file)
    cases, left_out = [], {}
    for node in nodes:
        case = graph_nodes.case_of(node, batch, time) if node.op in names else None
        if case is None:
            left_out.setdefault(_why_left_out(node, names), []).append(node.name)
        elif case not in cases:
            cases.append(case)
    lines = [f"{graph_plan.and_more(found)}: {reason}" for reason, found in left_out.items()]
    lines += _of_passes(file)
    if not cases:
        because = "; ".join(lines) or f"see blockcell inspect {file}"
        raise CommandError(f"{file} has no call to verify with these ops: {because}")
    return cases, lines


def _why_left_out(node, names):
    from blockcell_tools import graph_nodes

    if node.op not in names and not node.kept:
        return f"--ops has no {node.op}"
    return graph_nodes.why_not(node) or "the sizes of its weights are not known"


def _of_passes(file):
    """The nodes that the graph passes make, which are no calls in the file."""
    from blockcell_tools import graph_plan, keras_nodes

    if keras_nodes.is_file(file):
        return
    try:
        places = graph_plan.read(file)
    except graph_plan.PlanError as error:
        yield f"nodes of the graph passes: TensorFlow does not accept the graph: {error}"
        return
    made = collections.Counter(place.becomes for place in places if place.becomes)
    if made:
        ops = ", ".join(f"{op} {count}" for op, count in sorted(made.items()))
        yield (
            f"nodes of the graph passes, for plain cells and products: {ops}. "
            "blockcell compare runs the whole model"
        )


def _print(console, about, results, failed):
    lines = verification.summary(results)
    cells = [
        [
            *(line.op, line.kind, line.variant),
            str(line.cases) if not line.failed else f"{line.failed} of {line.cases} FAILED",
            *(_number(line.error), line.output or "-", _number(line.limit)),
            _number(line.stock_error),
        ]
        for line in lines
    ]
    styles = ["red" if line.failed else None for line in lines]
    title = "blockcell {version} in TensorFlow {tensorflow_running}, {isa}".format(**about)
    console.print(table(title, _COLUMNS, cells, 3, _NOTE, styles))
    for result in failed[:20]:
        console.print(f"FAILED {result.case}: {result.problem}", style="red", soft_wrap=True)
    if len(failed) > 20:
        console.print(f"and {len(failed) - 20} more: --report or --junit lists all")
    console.print(
        f"{len(results) - len(failed)} of {len(results)} cases are within their limits.",
        highlight=False,
    )


def _number(value):
    return "-" if value is None else f"{value:.1e}"
