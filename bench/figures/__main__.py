"""Writes docs/figures.md from the files of all benchmarks, and README's table and chart from it."""

import argparse
import sys
import textwrap
from collections import OrderedDict
from pathlib import Path

from bench.figures import readme
from bench.figures.rows import pivot, read
from bench.figures.sections import SECTIONS
from blockcell_tools.bench.machine import in_words
from blockcell_tools.bench.report import (
    at,
    geometric_mean,
    grouped,
    markdown_table,
    with_quartiles,
)

HOW = """\
One machine and one build; `make bench-figures` measures all of it and writes this page.
[Performance](performance.md#how-it-is-measured) describes how each part is measured.

The sides alternate. *ratio* is how many times as fast blockcell is: the median of the ratios of
single rounds, with their quartiles. Times are of the median round, in milliseconds. A row during
which other processes left too few processors is marked by !, and is not reliable. *mean* is the
geometric mean of the rows, and *lowest* the worst row. If some rows of a group have batches of 1 to
8, as in inference, and others larger ones, their means are separate. The means for several numbers
of threads are over the same rows."""

FEW = 8
"""The largest batch that is not averaged with those of training."""

COMMANDS = "The commands that the targets above ran, with the options for this page:"

NOTHING = "Not measured yet: `make {target}`."


def main():
    """Writes the page."""
    parser = argparse.ArgumentParser(prog="python -m bench.figures", description=__doc__)
    parser.add_argument("--input", type=Path, default=Path("build/figures"), metavar="FOLDER")
    parser.add_argument("--output", type=Path, default=Path("docs/figures.md"), metavar="FILE")
    parser.add_argument("--readme", type=Path, metavar="FILE", help="whose table is written, too")
    parser.add_argument("--chart", type=Path, metavar="FILE", help="README's chart, too")
    parser.add_argument(
        "--keep", action="store_true", help="leave the page, and take README's figures from it"
    )
    arguments = parser.parse_args()
    if not arguments.keep:
        write_page(arguments)
    text = arguments.output.read_text(encoding="utf-8")
    if arguments.readme:
        before = arguments.readme.read_text(encoding="utf-8")
        arguments.readme.write_text(readme.updated(before, text), encoding="utf-8")
    if arguments.chart and readme.overview(text):
        arguments.chart.write_text(readme.chart(text), encoding="utf-8")


def write_page(arguments):
    """Writes the page, from the files of all benchmarks."""
    found, abouts = OrderedDict(), []
    for section in SECTIONS:
        found[section] = []
        for path in sorted(arguments.input.glob(section.files)):
            rows, about = read(path, section.reader)
            found[section] += rows
            abouts += [about] if about and about not in abouts else []
    processors = {about["machine"]["cpu"] for about in abouts}
    if len(processors) > 1:
        sys.exit(f"bench.figures: files of several machines: {', '.join(sorted(processors))}")
    arguments.output.write_text(page(found, abouts), encoding="utf-8")


def page(found, abouts):
    """The page in Markdown.

    Args:
      found: The rows, by `Section`.
      abouts: What the files say of the machine and of versions.
    """
    parts = ["# Figures", *machine(abouts), HOW, "## Overview"]
    heads = ("part", "of", "baseline", "threads", "rows", "mean", "lowest", "where")
    lines = [
        [section.title, *cells] for section, rows in found.items() for cells in mean_lines(rows)
    ]
    parts += [markdown_table(heads, lines, 3) if lines else NOTHING.format(target="bench-figures")]
    for section, rows in found.items():
        parts += [f"## {section.title}", textwrap.fill(section.text, 110)]
        if not rows:
            parts += [NOTHING.format(target=section.target)]
        else:
            parts += [f"`make {section.target}`"]
            parts += tables(rows, section) if section.whole else [below(rows)]
    commands = [about["command"] for about in abouts]
    if commands:
        parts += ["## Commands", COMMANDS, "\n".join(["```sh", *commands, "```"])]
    return "\n\n".join(parts) + "\n"


def machine(abouts):
    """A paragraph on machine, commit and versions, as a list; empty if nothing is known."""
    if not abouts:
        return []
    versions = OrderedDict()
    for about in abouts:
        for name, version in about["versions"].items():
            versions.setdefault(name, OrderedDict())[version] = True
    named = "; ".join(f"{name} {', '.join(all_)}" for name, all_ in versions.items())
    where = dict(abouts[0]["machine"])
    measured = [cores for about in abouts for cores in real_cores(about.get("limits") or [])]
    if measured:  # Better than the measurement of a moment.
        where["real_cores"] = max(measured)
    commits = OrderedDict.fromkeys(about["commit"] for about in abouts if about.get("commit"))
    named += f"; commit {', '.join(commits)}" if commits else ""
    dates, isa = sorted(about["date"] for about in abouts), abouts[0]["isa"]
    return [f"{dates[0]} to {dates[-1]}: {in_words(where)}, instruction set {isa}. {named}."]


def real_cores(limits):
    """How many times the multiply-adds of one thread all have, as a list; empty if not known."""
    rates = {one["threads"]: one["flops_per_second"] for one in limits}
    return [rates[max(rates)] / rates[1]] if 1 in rates and len(rates) > 1 else []


def mean_lines(rows):
    """Cells of the overview: of each group, rival and number of threads."""
    for key, some in grouped(by_batch(rows), lambda row: (row.group, row.rival)).items():
        for threads, comparable in on_all_threads(some).items():
            lowest = min(comparable, key=lambda row: row.ratio)
            yield [
                *(*key, str(threads), str(len(comparable))),
                f"{geometric_mean([row.ratio for row in comparable]):.2f}",
                *(f"{lowest.ratio:.2f}", f"{lowest.case} {lowest.shape}".strip()),
            ]


def by_batch(rows):
    """The rows; where a group has batches of a few and of more, these are groups of their own."""
    found = []
    for some in grouped(rows, lambda row: (row.group, row.rival)).values():
        kinds = {row.batch is not None and row.batch <= FEW for row in some}
        for row in some:
            few = row.batch is not None and row.batch <= FEW
            words = f", batches of 1 to {FEW}" if few else ", larger batches"
            found.append(row._replace(group=row.group + words) if len(kinds) > 1 else row)
    return found


def on_all_threads(rows):
    """By the number of threads, the rows of cases that were measured on all of these numbers.

    Where there is no such case, all rows.
    """
    cases = grouped(rows, lambda row: (row.case, row.shape), lambda row: row.threads)
    counts = sorted({row.threads for row in rows})
    common = {case for case, threads in cases.items() if sorted(set(threads)) == counts}
    comparable = [row for row in rows if (row.case, row.shape) in common] or rows
    return grouped(sorted(comparable, key=lambda row: row.threads), lambda row: row.threads)


def tables(rows, section):
    """A table of each group and rival, all numbers of threads side by side."""
    threads = sorted({row.threads for row in rows})
    groups = grouped(
        pivot(rows).items(), lambda item: item[0][:2], lambda item: (*item[0][2:], item[1])
    )
    parts = []
    for (group, rival), lines in groups.items():
        shaped = any(shape for _, shape, _ in lines)
        heads = ["", *(["shape"] if shaped else [])]
        for count in threads:
            heads += [f"{at(count)}: {rival} {section.unit}", f"blockcell {section.unit}", "ratio"]
        cells = [
            [case, *([shape] if shaped else []), *side_by_side(by_threads, threads, section.scale)]
            for case, shape, by_threads in lines
        ]
        parts += [f"**{group}, against {rival}**", markdown_table(heads, cells, 1 + shaped)]
    return parts


def side_by_side(by_threads, threads, scale):
    """Numbers and ratios at each number of threads, empty where nothing was measured."""
    cells = []
    for count in threads:
        row = by_threads.get(count)
        if row is None:
            cells += 3 * [""]
        else:
            ratio = (
                with_quartiles(row.ratio, row.quartiles) if row.quartiles else f"{row.ratio:.2f}"
            )
            cells += [digits(row.theirs * scale), digits(row.ours * scale)]
            cells += [ratio + "!" * row.disturbed]
    return cells


def digits(number):
    """A number with three digits, or more before the point."""
    return f"{number:,.3g}" if number < 1000.0 else f"{number:,.0f}"


def below(rows):
    """How many rows of each op are slower than the rival."""
    groups = grouped(rows, lambda row: (row.group, row.threads), lambda row: row.ratio)
    lines = [
        [
            *(group, str(threads), str(len(ratios))),
            *(str(sum(ratio < bound for ratio in ratios)) for bound in (1.0, 0.95, 0.85)),
        ]
        for (group, threads), ratios in groups.items()
    ]
    heads = ("op", "threads", "rows", "below 1", "below 0.95", "below 0.85")
    return markdown_table(heads, lines, 1)


if __name__ == "__main__":
    main()
