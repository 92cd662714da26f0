"""Tables of the comparison: on the terminal, in Markdown and in JSON."""

import json
from typing import Dict, List, NamedTuple, Optional, Tuple

import numpy as np

from bench.peers.nets import INT8, RIVALS, Net
from blockcell_tools.bench import machine, plots
from blockcell_tools.bench.report import (
    at,
    geometric_mean,
    grouped,
    json_limits,
    json_of_case,
    limit_parts,
    markdown_table,
    others,
    percent,
    ratio_quartiles,
    rich_table,
    where_and_when,
    with_quartiles,
)

TITLE = "Sequences: ours, TensorFlow's block op, Keras, PyTorch and ONNX Runtime"

NOTE = (
    "Median milliseconds of a call, of processes that took turns; median and quartiles of the "
    "ratios rival/ours of single rounds. Floor: the time that the machine needs at "
    "least for the arithmetic or for the bytes, whichever takes longer, as a share of ours. "
    "Others: cores that other processes used meanwhile; a row where they left fewer cores than it "
    "has threads is marked by !, and tells little."
)
"""What the columns mean."""

LARGEST = ", largest error against float64"
MEAN = ", mean error against float64"
"""How the errors of a row against float64 are called: a side, and one of these."""


class Row(NamedTuple):
    """The result for a net at a number of threads; times in seconds a call."""

    net: Net
    threads: int
    seconds: Dict[str, float]
    """Median by side."""
    ratios: Dict[str, Tuple[float, Tuple[float, float]]]
    """Median and quartiles of the ratios of single rounds, by rival."""
    floor: Optional[float]
    neighbours: Optional[float]
    rounds: int
    errors: Dict[str, float]

    def ratio(self, rival):
        """How many times faster ours is; None if the rival was not measured."""
        return self.ratios[rival][0] if rival in self.ratios else None

    def quartiles(self, rival):
        """The quartiles of the same ratios."""
        return self.ratios[rival][1]

    @property
    def share(self):
        """Share of the machine's limit that ours reaches."""
        return None if self.floor is None else self.floor / self.seconds["ours"]

    def cells(self):
        """What the tables show of it, in the order of `columns`."""
        cells = [self.net.kind, self.net.work, self.net.case.shape, str(self.threads)]
        cells.append(_milliseconds(self.seconds["ours"]))
        rivals = RIVALS[self.net.work]
        cells += [_milliseconds(self.seconds.get(rival)) for rival in rivals]
        for rival in rivals:
            cells.append(with_quartiles(*self.ratios[rival]) if rival in self.ratios else "")
        return [*cells, percent(self.share), others(self.neighbours, self.threads)]


def columns(rivals):
    """Heads of the table of `Row`s."""
    ratios = (f"ratio {rival}" for rival in rivals)
    return ("layer", "work", "shape", "threads", "ours", *rivals, *ratios, "of floor", "others")


def by_rivals(rows):
    """The rows by their rivals: those of a table each."""
    return grouped(rows, lambda row: RIVALS[row.net.work])


def _milliseconds(seconds):
    return "" if seconds is None else f"{seconds * 1e3:,.{'3g' if seconds < 0.1 else '0f'}}"


class Found(NamedTuple):
    """All that was measured."""

    about: dict
    limits: Dict[int, machine.Limits]
    rows: List[Row]
    left_out: List[str]


def make_row(net, threads, turns, limits):
    """The row of `Turns`."""
    ours = turns.seconds["ours"]
    return Row(
        net=net,
        threads=threads,
        seconds={name: float(np.median(found)) for name, found in turns.seconds.items()},
        ratios={
            name: ratio_quartiles(found, ours)
            for name, found in turns.seconds.items()
            if name != "ours"
        },
        floor=None if limits is None or net.work == INT8 else limits.floor(net.case),
        neighbours=machine.cores_of(turns.spent),
        rounds=len(ours),
        errors=turns.errors,
    )


MEAN_COLUMNS = ("layer", "work", "rival", "threads", "rows", "geometric mean", "lowest")
"""Heads of the table of means."""


def means(rows):
    """The geometric mean and the lowest of the ratios to each rival, as cells and as fields."""
    groups = grouped(
        [(row, rival) for row in rows for rival in RIVALS[row.net.work] if rival in row.seconds],
        lambda pair: (pair[0].net.kind, pair[0].net.work, pair[1], pair[0].threads),
        lambda pair: pair[0].ratio(pair[1]),
    )
    return [
        dict(zip(MEAN_COLUMNS, [*key, len(ratios), geometric_mean(ratios), min(ratios)]))
        for key, ratios in groups.items()
    ]


def _mean_cells(mean):
    return [f"{value:.2f}" if isinstance(value, float) else str(value) for value in mean.values()]


def _accuracies(rows):
    """A line for each row that was compared with float64."""
    for row in rows:
        sides = [name[: -len(LARGEST)] for name in row.errors if name.endswith(LARGEST)]
        if sides:
            each = ", ".join(
                f"{side} {row.errors[side + LARGEST]:.2e} and {row.errors[side + MEAN]:.2e}"
                for side in sides
            )
            yield f"Largest and mean error against float64, {row.net}, {at(row.threads)}: {each}."


def print_tables(console, found):
    """Prints the results and their means."""
    for rivals, rows in by_rivals(found.rows).items():
        sections = [(row.net.kind, row.net.work, row.threads) for row in rows]
        lines = [row.cells() for row in rows]
        console.print(rich_table(TITLE, columns(rivals), lines, 2, NOTE, sections=sections))
    for line in _accuracies(found.rows):
        console.print(line)
    lines = [_mean_cells(mean) for mean in means(found.rows)]
    console.print(rich_table("Ratios over all shapes", MEAN_COLUMNS, lines, 3))


def write(folder, stem, found):
    """Writes JSON, Markdown and the plot; returns the files' names."""
    names = [stem + ending for ending in (".json", ".md", "-ratio.svg")]
    (folder / names[0]).write_text(json.dumps(_json(found), indent=1) + "\n", encoding="utf-8")
    plot(folder / names[2], found.rows)
    parts = [f"# {TITLE}", *where_and_when(found.about), f"![{names[2]}]({names[2]})"]
    for rivals, rows in by_rivals(found.rows).items():
        parts += [markdown_table(columns(rivals), [row.cells() for row in rows], 2)]
    parts += [NOTE, *_accuracies(found.rows)]
    parts += [markdown_table(MEAN_COLUMNS, [_mean_cells(m) for m in means(found.rows)], 3)]
    if found.left_out:
        parts += [f"Left out, as the library has no kernel: {', '.join(found.left_out)}."]
    parts += limit_parts(found.limits)
    (folder / names[1]).write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return names


def _json(found):
    """Everything that was measured; times in seconds."""
    rows = []
    for row in found.rows:
        limits = found.limits.get(row.threads)
        fields = dict(row.net._asdict(), **row._asdict())
        del fields["net"]
        fields.update(ratios={rival: row.ratio(rival) for rival in row.ratios})
        fields.update(quartiles={rival: row.quartiles(rival) for rival in row.ratios})
        rows.append(dict(fields, **json_of_case(row.net.case, row, row.seconds["ours"], limits)))
    content = dict(found.about, title=TITLE, limits=json_limits(found.limits), rows=rows)
    content.update(means=means(found.rows), left_out=found.left_out)
    return content


def plot(path, rows):
    """Bars of rival/ours: a panel for each layer, work and number of threads."""
    groups = grouped(rows, lambda row: (row.net.kind, row.net.work, plots.in_threads(row)))
    figure, axes = plots.panels(len(groups))
    for axis, (names, group) in zip(axes, groups.items()):
        shapes = list(grouped(group, lambda row: row.net.case.shape))
        series = {
            rival: {
                row.net.case.shape: (row.ratio(rival), *row.quartiles(rival))
                for row in group
                if rival in row.seconds
            }
            for rival in RIVALS[group[0].net.work]
        }
        plots.bars(axis, shapes, series)
        axis.set_title(", ".join(names))
        axis.legend(frameon=False)
    figure.suptitle("Times faster than the rival (quartiles of rounds in black)")
    return plots.save(figure, path)
