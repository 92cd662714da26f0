"""`blockcell verify`."""

import json
import sys
from pathlib import Path

import click

from blockcell.cli.console import (
    CommandError,
    import_tensorflow,
    new_console,
    new_progress,
    quiet_tensorflow,
    table,
    waiting,
)
from blockcell.cli.options import Listed
from blockcell.op_table import OPS
from blockcell_tools import cudnn_verification, verification

_COLUMNS = ("op", "kind", "type and options", "cases", "ours: worst", "of", "limit", "stock: worst")
_TYPES = {"float32": "float32", "half": "float16"}
_NOTE = (
    "Scaled errors: the largest difference from the float64 reference, relative to the largest "
    "element. TensorFlow's own errors do not count."
)


@click.command("verify")
@click.option("--quick", is_flag=True, help="A few sizes of each op, in under a minute.")
@click.option("--ops", metavar="OP,...", help="Only these ops (default: all).")
@click.option(
    "--dtypes",
    type=Listed(click.Choice(list(_TYPES))),
    default=",".join(_TYPES),
    metavar="TYPE,...",
    help=f"Of {', '.join(_TYPES)} (default: both).",
)
@click.option("--graph", metavar="FILE", help="Instead of a grid: the calls in this graph's file.")
@click.option(
    "--batch", type=int, default=3, show_default=True, help="Where a graph leaves it open."
)
@click.option(
    "--time", type=int, default=5, show_default=True, help="Where a graph leaves it open."
)
@click.option("--tolerance", type=float, metavar="X", help="Scaled error to accept everywhere.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the random inputs.")
@click.option("--library", metavar="FILE", help="The libblockcell.so to verify.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--report", metavar="FILE", help="Write all results as JSON.")
@click.option("--junit", metavar="FILE", help="Write a JUnit report.")
@click.option("--quiet", is_flag=True, help="Print failures only.")
def command(
    quick, ops, dtypes, graph, batch, time, tolerance, seed, library, as_json, report, junit, quiet
):
    """Check every kernel, forward and gradient, against TensorFlow's and a float64 reference.

    Runs TensorFlow's kernels and the library's in one process. The exit code is 0 if every output
    of the library's is as accurate as it has to be, 1 if not, 2 if it could not be tried.
    """
    quiet_tensorflow()
    names = _ops(ops)
    console = new_console(quiet or as_json)
    with waiting(console, "loading TensorFlow and the library"):
        about = _load(library)
    if graph:
        cases = _cases_of_graph(graph, batch, time, names)
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
            results.append(kind.check(case, seed, tolerance))
            progress.advance(bar)
    failed = [result for result in results if result.problem is not None]
    _print(console, about, results, failed)
    text = json.dumps(verification.as_json(results, dict(about, seed=seed)), indent=1)
    if as_json:
        print(text)
    for file, content in ((report, text), (junit, verification.as_junit(results))):
        if file:
            Path(file).write_text(content + "\n", encoding="utf-8")
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


def _load(library):
    import blockcell

    import_tensorflow()
    blockcell.load(library, take_over=False)
    info = blockcell.info()
    if info["taken_over"]:
        raise CommandError("the library has replaced the stock kernels in spite of take_over=False")
    keys = ("version", "tensorflow_running", "isa", "library")
    return {key: info[key] for key in keys}


def _cases_of_graph(file, batch, time, names):
    from blockcell_tools import graph_nodes

    nodes = [node for node in graph_nodes.read(file) if node.op in names]
    if not nodes:
        raise CommandError(f"{file} has no node of these ops: see blockcell inspect {file}")
    cases = []
    for node in nodes:
        case = graph_nodes.case_of(node, batch, time)
        if case is not None and case not in cases:
            cases.append(case)
    return cases


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
        console.print(f"and {len(failed) - 20} more: --report or --junit has all")
    console.print(
        f"{len(results) - len(failed)} of {len(results)} cases are as accurate as they have to be.",
        highlight=False,
    )


def _number(value):
    return "-" if value is None else f"{value:.1e}"
