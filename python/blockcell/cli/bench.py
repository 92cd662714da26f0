"""`blockcell bench`."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import click

from blockcell.cli.console import CommandError, new_console, quiet_tensorflow, writing
from blockcell.cli.options import (
    COUNT,
    Listed,
    Parsed,
    batch_option,
    choose_weights,
    json_option,
    precision_option,
    quiet_option,
    report_option,
    time_option,
    weights_option,
    write_json,
)
from blockcell.precision import VARIABLE
from blockcell_tools.bench import client_rows, files, machine, report, run, shapes
from blockcell_tools.bench.ops import DTYPES
from blockcell_tools.bench.rows import RowsError
from blockcell_tools.bench.tables import OPS, USUAL_OPS
from blockcell_tools.bench.workers import WorkerError
from blockcell_tools.verification import INT8_OPS

_MEMORY = shapes.Shape(35, 20, 1500, 1500)
"""The training step whose memory is measured unless told otherwise."""
_ALL = {"all": "all"}
_PEEPHOLE = {"off": [False], "on": [True], "both": [False, True], None: None}
_ABOVE_0 = click.FloatRange(min=0.0, min_open=True)


@click.command("bench")
# What is measured.
@click.option(
    "--ops",
    type=Listed(click.Choice([*OPS, "all"])),
    metavar="OP,...",
    help=f"Ops to time: {', '.join(OPS)}; or all (default: all but the last two; BlockLSTM with "
    "--clients).",
)
@click.option(
    "--shapes",
    "steps",
    type=Listed(Parsed(shapes.cell_shape, _ALL)),
    metavar="BxC,...",
    help="Shapes of single steps: batch and cell size, or BxDxC with another input size; or all, "
    "which applies to sequences, too (default: seven from 1x128 to 128x1024).",
)
@click.option(
    "--sequences",
    type=Listed(Parsed(shapes.sequence_shape, _ALL)),
    metavar="TxBxC,...",
    help="Shapes of sequences: time, batch and cell size, or TxBxDxC; or all (default: six, "
    "20x20x200 to 100x64x512).",
)
@click.option(
    "--random",
    type=COUNT,
    metavar="N",
    help="Time N random shapes instead, and print those where ours is slower.",
)
@click.option("--graph", metavar="FILE", help="Time the calls of this graph file instead.")
@click.option(
    "--linear",
    is_flag=True,
    help=f"Time 1 to {shapes.MOST_ROWS:,} rows instead, in the batch and in time.",
)
@click.option(
    "--clients",
    type=Listed(COUNT),
    metavar="K,...",
    help="Time K concurrent clients instead, each with its own input and checked results: calls "
    "per second, p50 and p99 (default of --sequences: 50x8x256 and 50x1x128).",
)
@batch_option
@time_option
@click.option(
    "--dtypes",
    type=Listed(click.Choice(list(DTYPES))),
    metavar="TYPE,...",
    help=f"Types: {', '.join(DTYPES)} (default: both; float32 with --random, --linear and "
    "--graph).",
)
@click.option(
    "--peephole",
    type=click.Choice(["off", "on", "both"]),
    help="use_peephole of the LSTM ops (default: both for single steps, off for sequences, random "
    "with --random).",
)
@click.option(
    "--memory",
    type=Parsed(shapes.sequence_shape, {"off": False}),
    metavar="TxBxC",
    help="Training step whose peak memory is measured, or off (default: 35x20x1500; off with "
    "--random, --linear and --graph).",
)
# How it is measured.
@click.option(
    "--threads",
    type=Listed(COUNT),
    default="1,2",
    show_default=True,
    metavar="N,...",
    help="Sizes of the intra-op thread pool.",
)
@click.option(
    "--inter-op",
    type=int,
    default=0,
    metavar="N",
    help="With --clients: inter_op_parallelism_threads of the session; -1 runs each call in its "
    "client's own thread (default: TensorFlow's).",
)
@click.option(
    "--seconds",
    type=_ABOVE_0,
    help="Seconds per row (default: 1; 4 with --clients).",
)
@click.option(
    "--seed",
    type=int,
    default=20191018,
    show_default=True,
    help="Seed of the inputs and of random shapes.",
)
@click.option(
    "--library",
    metavar="FILE",
    help="The libblockcell.so to measure (default: the one for this Python's TensorFlow).",
)
@precision_option
@weights_option
# What comes of it.
@click.option(
    "--check-ratio",
    type=_ABOVE_0,
    metavar="X",
    help="Fail if stock/ours is below X in any row.",
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("build") / "bench",
    show_default=True,
    metavar="FOLDER",
    help="Folder for JSON, Markdown, plots and the HTML page.",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Continue an interrupted run: keep its rows in the folder.",
)
@json_option
@report_option
@quiet_option
def command(**options):
    """Time single operations, TensorFlow's kernels and ours side by side.

    Separate the values of lists by commas. The environment variable BLOCKCELL_ISA=avx2 or portable
    applies to our kernels and to the machine's limits. The exit code is 1 if a check fails, 2 if
    it could not be measured, 130 if it was interrupted. `blockcell compare` times whole models.
    """
    quiet_tensorflow()
    if options["precision"]:
        os.environ[VARIABLE] = options["precision"]  # For the processes that measure.
    choose_weights(options["weights"])
    wanted = _wanted(**options)
    console = new_console(wanted.quiet or wanted.as_json)
    measuring, tables, written = [client_rows] * 3 if wanted.clients else [run, report, files]
    try:
        found = measuring.measure(wanted, console)
    except (WorkerError, machine.MachineError, RowsError) as error:
        raise CommandError(str(error)) from error
    except KeyboardInterrupt:
        console.print(
            f"Interrupted: the measured rows are in {wanted.output}. To continue, repeat the "
            "command with --resume.",
            soft_wrap=True,
        )
        raise
    if found.left_out:
        console.print(f"Left out, because the library has no kernel: {', '.join(found.left_out)}")
    if not found.rows:
        raise CommandError("nothing to measure with these ops, dtypes and shapes")
    tables.print_tables(console, found)
    with writing(wanted.output):
        written.write(wanted.output, found, console)
    write_json(tables.as_json(found), wanted.as_json, wanted.report)
    sys.exit(0 if _check(found, wanted, console) else 1)


def _wanted(**options):
    """The options, with defaults that depend on other options."""
    wanted = SimpleNamespace(**options)
    wanted.shapes = wanted.__dict__.pop("steps")
    modes = [name for name in ("random", "graph", "linear", "clients") if options[name]]
    if len(modes) > 1:
        raise click.UsageError(f"--{modes[0]} and --{modes[1]} cannot be combined.")
    if modes and not wanted.clients and (wanted.shapes or wanted.sequences):
        raise click.UsageError(f"--{modes[0]} cannot be combined with shapes.")
    if wanted.clients:
        _of_clients(wanted)
    wanted.seconds = wanted.seconds or 1.0
    wanted.ops = wanted.ops or list(USUAL_OPS)
    if "all" in wanted.ops:
        wanted.ops = list(OPS)
    wanted.threads = sorted(set(wanted.threads))
    wanted.peephole = _PEEPHOLE[wanted.peephole]
    if wanted.dtypes is None:
        wanted.dtypes = ["float32"] if modes else list(DTYPES)
    if options["weights"] not in (None, "float32"):
        wanted.ops = [op for op in wanted.ops if op in INT8_OPS]
        wanted.memory = wanted.memory or False
    if wanted.memory is None and not modes:
        wanted.memory = _MEMORY
    return wanted


def _of_clients(wanted):
    """The options of `--clients`, where they differ from the others'."""
    forward = client_rows.FORWARD
    wanted.clients = sorted(set(wanted.clients))
    wanted.seconds = wanted.seconds or 4.0
    wanted.ops = list(forward) if wanted.ops == ["all"] else wanted.ops or [client_rows.USUAL_OP]
    other = [op for op in wanted.ops if op not in forward]
    if other:
        raise click.UsageError(f"--clients supports {', '.join(forward)}, not {other[0]}.")


def _check(found, wanted, console):
    """Says which rows were disturbed, and which are slower than allowed; False if any is."""
    disturbed = sum(row.disturbed() for row in found.rows)
    if disturbed:
        console.print(
            f"Other processes took cores from {disturbed} of {len(found.rows)} rows (marked !): "
            "repeat these on a machine without other load."
        )
    least = wanted.check_ratio or 0.0
    slow = [row for row in found.rows if row.ratio < least]
    for row in slow:
        # What is printed as JSON stays JSON.
        to = sys.stderr if wanted.as_json else sys.stdout
        print(f"below the ratio of {least}: {row.named()}: {row.ratio:.2f}", file=to)
    return not slow
