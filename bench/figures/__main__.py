"""Writes docs/figures.md from the files of all benchmarks, and README's table and chart from it."""

import argparse
import sys
import textwrap
from collections import OrderedDict
from pathlib import Path

from bench.figures import readme
from bench.figures.rows import pivot, read
from bench.figures.sections import SECTIONS
from blockcell_tools.bench.report import at, geometric_mean, grouped, markdown_table

HOW = """\
One machine and one build; `make bench-figures` measures all of it and writes this page.
[Performance](performance.md#how-it-is-measured) says how each part is measured.

The sides take turns. *ratio* is how many times as fast blockcell is: the median of the ratios of
single rounds, with their quartiles. Times are of the median round, in milliseconds. A row during
which other processes left too few processors is marked by !, and tells little. *mean* is the
geometric mean of the rows, *lowest* the worst of them."""

COMMANDS = "What the targets above have called, with the options of this page:"

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
            abouts += [about] if about else []
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
    heads = ("part", "of", "rival", "threads", "rows", "mean", "lowest", "where")
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
            parts += tables(rows) if section.whole else [below(rows)]
    commands = [about["command"] for about in abouts]
    if commands:
        parts += ["## Commands", COMMANDS, "\n".join(["```sh", *commands, "```"])]
    return "\n\n".join(parts) + "\n"


def machine(abouts):
    """A paragraph on the machine and the versions, as a list; empty if nothing is known."""
    if not abouts:
        return []
    versions = OrderedDict()
    for about in abouts:
        for name, version in about["versions"].items():
            versions.setdefault(name, OrderedDict())[version] = True
    named = "; ".join(f"{name} {', '.join(all_)}" for name, all_ in versions.items())
    where = abouts[0]["machine"]
    dates = sorted(about["date"] for about in abouts)
    return [
        f"{dates[0]} to {dates[-1]}: {where['cpu']}, {where['cores']} cores, {where['system']}, "
        f"instruction set {abouts[0]['isa']}. {named}."
    ]


def mean_lines(rows):
    """Cells of the overview: of each group, rival and number of threads."""
    by_threads = sorted(rows, key=lambda row: row.threads)
    groups = grouped(by_threads, lambda row: (row.group, row.rival, row.threads))
    order = list(grouped(rows, lambda row: (row.group, row.rival)))
    for key, some in sorted(groups.items(), key=lambda item: order.index(item[0][:2])):
        lowest = min(some, key=lambda row: row.ratio)
        yield [
            *map(str, key),
            *(str(len(some)), f"{geometric_mean([row.ratio for row in some]):.2f}"),
            *(f"{lowest.ratio:.2f}", f"{lowest.case} {lowest.shape}".strip()),
        ]


def tables(rows):
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
            heads += [f"{at(count)}: {rival} ms", "blockcell ms", "ratio"]
        cells = [
            [case, *([shape] if shaped else []), *side_by_side(by_threads, threads)]
            for case, shape, by_threads in lines
        ]
        parts += [f"**{group}, against {rival}**", markdown_table(heads, cells, 1 + shaped)]
    return parts


def side_by_side(by_threads, threads):
    """Times and ratios at each number of threads, empty where nothing was measured."""
    cells = []
    for count in threads:
        row = by_threads.get(count)
        cells += 3 * [""] if row is None else [milliseconds(row.theirs), *ours(row)]
    return cells


def ours(row):
    """Our time, and the ratio with its quartiles."""
    mark = "!" if row.disturbed else ""
    low, high = row.quartiles
    return [milliseconds(row.ours), f"{row.ratio:.2f} ({low:.2f} to {high:.2f}){mark}"]


def milliseconds(seconds):
    """A time with three digits."""
    return f"{seconds * 1e3:,.3g}" if seconds < 1.0 else f"{seconds * 1e3:,.0f}"


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
