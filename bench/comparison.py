"""The frame of the comparisons in turns: command lines, the loop over nets, rows and their files.

Nets are named tuples that a side of `blockcell_tools.bench.side` can prepare. The first side is
"ours", the others are its rivals.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Callable, NamedTuple, Tuple

import numpy as np

from bench.nets import LARGEST_ERROR
from blockcell.cli.console import new_console, new_progress
from blockcell_tools.bench import machine
from blockcell_tools.bench.report import (
    at,
    geometric_mean,
    grouped,
    markdown_table,
    others,
    ratio_quartiles,
    rich_table,
)
from blockcell_tools.bench.run import circumstances
from blockcell_tools.bench.turns import at_all_threads
from blockcell_tools.bench.workers import WorkerError

COLUMNS = ("threads", "rival", "ours ms", "rival ms", "ratio", "quartiles", "others")
"""Those that `cells` fills."""

NOTE = (
    "Median milliseconds of a {}, of processes that took turns; median and quartiles of the ratios "
    "rival/ours of single rounds. Others: cores that other processes used meanwhile."
)
"""What they mean, given what the times are of."""


def positive(kind):
    """A type of argument: a number above zero."""

    def parse(text):
        number = kind(text)
        if not number > 0:
            raise argparse.ArgumentTypeError(f"{text} is not above 0")
        return number

    return parse


def new_parser(program, description, seconds):
    """The parser of a comparison's command line, with the options that all have.

    Args:
      program: The module that is run.
      description: What it does.
      seconds: How long the rounds of a row take if nothing is said.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=description)
    add = parser.add_argument
    add("--threads", nargs="+", type=positive(int), default=[1, 2], metavar="N")
    add(
        "--seconds",
        type=positive(float),
        default=seconds,
        help="time for the rounds of a row (default: %(default)s)",
    )
    add("--library", metavar="FILE", help="libblockcell.so to measure (default: as for bench)")
    add(
        "--output",
        type=Path,
        default=Path("build") / "bench",
        metavar="FOLDER",
        help="where the results go (default: build/bench)",
    )
    add("--seed", type=int, default=20191018, help="of the inputs (default: %(default)s)")
    return parser


class Comparison(NamedTuple):
    """What one comparison differs in from the others."""

    program: str
    """The package; its module `sides` runs a side."""
    title: str
    """Of the table; versions may stand in braces."""
    file: str
    """The first part of the files' names; the same."""
    columns: Tuple[str, ...]
    """Heads of what the tables show of a net, before `COLUMNS`."""
    cells: Callable
    """Given a net and its row, returns that."""
    note: str
    """What stands below the table."""
    has: Callable = lambda net, rival: True
    """Whether a rival has a net."""
    is_slow: Callable = lambda row: False
    """Whether a row is to be seen at once."""
    largest_error: float = LARGEST_ERROR
    """How much results may differ, relative to the largest element."""

    def run(self, arguments, nets, rivals):
        """Measures, prints and writes.

        Args:
          arguments: Those of `new_parser`.
          nets: What is measured.
          rivals: Names of the sides beside ours.

        Returns:
          The rows, as dictionaries.
        """
        console = new_console()
        about = dict(circumstances("python", "-m", self.program), versions={})
        try:
            with new_progress(console) as progress:
                found = list(self._measure(arguments, nets, rivals, about, progress))
        except WorkerError as error:
            sys.exit(f"{self.program}: {error}")
        lines = [[*self.cells(net, row), *cells(row)] for net, row in found]
        rows = [row for _, row in found]
        table = ((*self.columns, *COLUMNS), lines, len(self.columns))
        styles = ["red" if self.is_slow(row) else None for row in rows]
        title = self.title.format(**about["versions"])
        console.print(rich_table(title, *table, self.note, styles))
        for rival, some in grouped(rows, lambda row: row["rival"], lambda r: r["ratio"]).items():
            mean = geometric_mean(some)
            console.print(f"{rival}: geometric mean {mean:.2f}, lowest {min(some):.2f}")
        file = self.file.format(**about["versions"])
        write(arguments.output / file, dict(about, rows=rows), table, self.note)
        return rows

    def _measure(self, arguments, nets, rivals, about, progress):
        """Yields each net with its row, for each rival and number of threads."""
        bar = progress.add_task("", total=len(nets) * len(arguments.threads))
        options = (arguments.threads, arguments.library, about)
        module = f"{self.program}.sides"
        for net, threads, sides in at_all_threads(module, ["ours", *rivals], nets, *options):
            progress.update(bar, description=f"{net}, {at(threads)}")
            here = [rival for rival in rivals if self.has(net, rival)]
            turns = sides.take_turns(
                net, ["ours", *here], arguments.seconds, arguments.seed, self.largest_error
            )
            for rival in here:
                yield net, row_of(net, threads, rival, turns, sides.abouts["ours"])
            progress.advance(bar)


def row_of(net, threads, rival, turns, ours_about=None):
    """What is known of a net, a named tuple, against a rival; times in seconds a call."""
    ours, theirs = turns.seconds["ours"], turns.seconds[rival]
    ratio, quartiles = ratio_quartiles(theirs, ours)
    row = {
        **net._asdict(),
        "threads": threads,
        "rival": rival,
        "ours": float(np.median(ours)),
        "theirs": float(np.median(theirs)),
        "ratio": ratio,
        "quartiles": quartiles,
        "rounds": len(ours),
        "error": turns.errors[rival],
        "neighbours": machine.cores_of(turns.spent),
    }
    if "rewritten" in (ours_about or {}):
        row["rewritten"] = ours_about["rewritten"]
    return row


def cells(row):
    """What the tables show of a row, in the order of `COLUMNS`."""
    return [
        str(row["threads"]),
        row["rival"],
        f"{row['ours'] * 1e3:.3g}",
        f"{row['theirs'] * 1e3:.3g}",
        f"{row['ratio']:.2f}",
        "{:.2f} to {:.2f}".format(*row["quartiles"]),
        others(row["neighbours"], row["threads"]),
    ]


def write(stem, content, table, note):
    """Writes content as JSON, and a table in Markdown: its columns, cells, and columns of words."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    stem.with_suffix(".json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    text = f"{markdown_table(*table)}\n\n{note}\n"
    stem.with_suffix(".md").write_text(text, encoding="utf-8")
