"""The options of `blockcell bench`, and what it writes."""

import argparse
import os
from pathlib import Path

from blockcell.bench import machine, report, run, shapes
from blockcell.bench.ops import DTYPES
from blockcell.bench.rows import ResumeError
from blockcell.bench.tables import OPS, USUAL_OPS
from blockcell.bench.workers import WorkerError
from blockcell.cli.console import CommandError, new_console
from blockcell.graph_nodes import GraphFileError

MEMORY = shapes.Shape(35, 20, 1500, 1500)
"""The training step whose memory is measured unless told otherwise."""


def main(words):
    """Runs the benchmark.

    Args:
      words: The command line.

    Returns:
      The exit code: 1 if a check fails, or if it was interrupted.

    Raises:
      CommandError: It cannot be measured.
    """
    arguments = parse_arguments(words)
    console = new_console(arguments.quiet)
    try:
        found = run.measure(arguments, console)
    except (WorkerError, machine.MachineError, ResumeError, GraphFileError) as error:
        raise CommandError(str(error)) from error
    except KeyboardInterrupt:
        console.print(
            f"Interrupted: the rows that were measured are kept in {arguments.output}; the same "
            "command with --resume goes on.",
            soft_wrap=True,
        )
        return 1
    if found.left_out:
        console.print(f"Left out, the library has no kernel: {', '.join(found.left_out)}")
    if not found.rows:
        raise CommandError("nothing to measure with these ops, dtypes and shapes")
    report.print_tables(console, found)
    write(arguments, found, console)
    disturbed = sum(row.disturbed() for row in found.rows)
    if disturbed:
        console.print(
            f"Other processes took cores from {disturbed} of {len(found.rows)} rows (marked !): "
            "measure those again on a quiet machine."
        )
    slow = [row for row in found.rows if row.ratio < (arguments.check_ratio or 0.0)]
    for row in slow:
        print(f"below the ratio of {arguments.check_ratio}: {row.named()}: {row.ratio:.2f}")
    return 1 if slow else 0


def parse_arguments(words):
    """Parses the command line."""
    parser = argparse.ArgumentParser(
        prog="blockcell bench",
        description="Times TensorFlow's kernels and ours side by side. BLOCKCELL_ISA=avx2 or "
        "portable in the environment holds for our kernels and for the machine's limits.",
    )
    _add_what(parser)
    _add_how(parser)
    arguments = parser.parse_args(words)
    if "all" in arguments.ops:
        arguments.ops = list(OPS)
    arguments.threads = sorted(set(arguments.threads))
    arguments.peephole = {"off": [False], "on": [True], "both": [False, True], None: None}[
        arguments.peephole
    ]
    special = arguments.random or arguments.linear or arguments.graph
    if arguments.dtypes is None:
        arguments.dtypes = ["float32"] if special else list(DTYPES)
    if special and (arguments.shapes or arguments.sequences):
        parser.error("--random, --linear and --graph choose the shapes themselves")
    if arguments.memory is None and not special:
        arguments.memory = MEMORY
    return arguments


def _add_what(parser):
    """Adds the options that say what is measured."""
    add = parser.add_argument
    add(
        "--ops",
        nargs="+",
        choices=[*OPS, "all"],
        default=list(USUAL_OPS),
        metavar="OP",
        help=f"of {', '.join(OPS)}; or all (default: all but the last two)",
    )
    add(
        "--shapes",
        nargs="+",
        type=_all_or(shapes.cell_shape),
        metavar="BxC",
        help="of single steps: batch and cell size, or BxDxC with an input size of its own; or "
        "all, which holds for sequences, too (default: seven from 1x128 to 128x1024)",
    )
    add(
        "--sequences",
        nargs="+",
        type=_all_or(shapes.sequence_shape),
        metavar="TxBxC",
        help="time, batch and cell size, or TxBxDxC; or all (default: six, 20x20x200 to "
        "100x64x512)",
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument(
        "--random",
        type=positive(int),
        metavar="N",
        help="instead: N random shapes; prints those where ours is slower",
    )
    mode.add_argument("--graph", metavar="FILE", help="instead: the calls in this graph's file")
    mode.add_argument(
        "--linear",
        action="store_true",
        help=f"instead: from 1 to {shapes.MOST_ROWS:,} rows, in the batch and in time",
    )
    for name, size in (("--batch", 32), ("--time", 35)):
        add(
            name,
            type=positive(int),
            default=size,
            metavar="N",
            help="where --graph leaves it open (default: %(default)s)",
        )
    add(
        "--dtypes",
        nargs="+",
        choices=list(DTYPES),
        help="default: both; float32 with --random and --linear",
    )
    add(
        "--peephole",
        choices=["off", "on", "both"],
        help="use_peephole of the LSTM ops (default: both of single steps, off of sequences; drawn "
        "with --random)",
    )
    add(
        "--memory",
        type=_off_or(shapes.sequence_shape),
        metavar="TxBxC",
        help="training step whose peak memory is measured, or off (default: 35x20x1500; off with "
        "--random and --linear)",
    )


def _add_how(parser):
    """Adds the options that say how it is measured."""
    add = parser.add_argument
    add(
        "--threads",
        nargs="+",
        type=positive(int),
        default=[1, 2],
        metavar="N",
        help="sizes of the intra-op pool (default: 1 2)",
    )
    add(
        "--seconds",
        type=positive(float),
        default=1.0,
        help="time for the rounds of a row (default: %(default)s)",
    )
    add(
        "--check-ratio",
        type=positive(float),
        metavar="X",
        help="fail if stock/ours is below X in any row",
    )
    add(
        "--library",
        metavar="FILE",
        help="libblockcell.so to measure (default: the one built for this Python's TensorFlow)",
    )
    add(
        "--output",
        type=Path,
        default=Path("build") / "bench",
        metavar="FOLDER",
        help="where JSON, Markdown, plots and the HTML page go (default: build/bench)",
    )
    add(
        "--resume",
        action="store_true",
        help="keep the rows that an interrupted run of the same options has left in the folder",
    )
    add("--quiet", action="store_true", help="print only what fails a check")
    add(
        "--seed",
        type=int,
        default=20191018,
        help="of the inputs and of random shapes (default: %(default)s)",
    )


def _all_or(kind):
    """A type of argument: the word all, or what `kind` makes of it."""
    return lambda text: text if text == "all" else kind(text)


def _off_or(kind):
    """A type of argument: False for the word off, or what `kind` makes of it."""
    return lambda text: False if text == "off" else kind(text)


def positive(kind):
    """A type of argument: a number above zero."""

    def parse(text):
        number = kind(text)
        if not number > 0:
            raise argparse.ArgumentTypeError(f"{text} is not above 0")
        return number

    return parse


def write(arguments, found, console):
    """Writes JSON, Markdown, plots and the page, named after what was measured."""
    folder, stem = arguments.output, run.stem(found.about, found.mode)
    folder.mkdir(parents=True, exist_ok=True)
    report.write_json(folder / (stem + ".json"), found)
    drawn = _plots(folder, stem, found, console)
    report.write_markdown(folder / (stem + ".md"), found, [path.name for path in drawn])
    pictures = [path.with_suffix(".png") for path in drawn]
    report.write_page(folder / (stem + ".html"), found, pictures)
    endings = (".json", ".md", ".html", ".rows.jsonl")
    names = [stem + ending for ending in endings] + [path.name for path in drawn + pictures]
    console.print(f"Written to {os.path.relpath(folder)}: {', '.join(names)}", soft_wrap=True)


def _plots(folder, stem, found, console):
    """Draws the plots, where matplotlib is there; returns the SVG files' paths."""
    try:
        from blockcell.bench import plots
    except ImportError:
        console.print("No plots: they need matplotlib (pip install matplotlib).")
        return []
    if found.mode == "linear":
        return [plots.time_over_rows(folder / (stem + ".svg"), found.rows)]
    drawn = [plots.ratios(folder / (stem + "-ratio.svg"), found.rows)]
    if found.limits:
        drawn.append(plots.shares(folder / (stem + "-floor.svg"), found.rows))
    return drawn
