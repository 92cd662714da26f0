"""Plots of the results, as SVG and PNG."""

import matplotlib
import numpy as np
from matplotlib.ticker import FuncFormatter, NullFormatter, PercentFormatter

matplotlib.use("Agg")
# The same results make the same file.
matplotlib.rcParams.update({"svg.hashsalt": "bench", "font.size": 9, "axes.spines.top": False})
matplotlib.rcParams.update({"axes.spines.right": False, "axes.axisbelow": True})

from matplotlib import pyplot  # noqa: E402 (the backend is chosen before)

from blockcell_tools.bench.report import at, grouped  # noqa: E402

COLORS = (
    *("#3b6fb6", "#d9822b", "#3a9a6b", "#a04fa0", "#b5453c"),
    *("#7a7a7a", "#8c6d31", "#17a2b8", "#111111", "#e377c2"),
)
"""Of what is side by side: numbers of threads, rivals, or ops."""

PANEL = (4.6, 2.5)
"""Width and height of a panel, in inches."""


def save(figure, path):
    """Writes a figure as SVG, and as PNG beside it; returns the path."""
    figure.savefig(str(path), bbox_inches="tight", facecolor="white", metadata={"Date": None})
    figure.savefig(str(path.with_suffix(".png")), bbox_inches="tight", facecolor="white", dpi=110)
    pyplot.close(figure)
    return path


def panels(count, columns=2, size=PANEL):
    """A figure with so many panels, and the list of their axes."""
    columns = min(columns, count)
    lines = -(-count // columns)
    figure, axes = pyplot.subplots(
        lines,
        columns,
        figsize=(size[0] * columns, size[1] * lines + 0.3),
        squeeze=False,
        constrained_layout=True,
    )
    axes = list(axes.flat)
    for unused in axes[count:]:
        unused.set_visible(False)
    return figure, axes[:count]


def in_threads(row):
    """The number of threads of a row, in words."""
    return at(row.threads)


def ratio_axis(axis):
    """Makes the vertical axis one of ratios: logarithmic, with a line at 1."""
    axis.set_yscale("log")
    axis.axhline(1.0, color="black", linewidth=0.8)
    low, high = axis.get_ylim()
    axis.set_ylim(min(low, 0.8), max(high, 2.0) * 1.1)
    ticks = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100]
    axis.set_yticks([tick for tick in ticks if axis.get_ylim()[0] <= tick <= axis.get_ylim()[1]])
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}x"))
    axis.yaxis.set_minor_formatter(NullFormatter())
    axis.grid(axis="y", linewidth=0.4, alpha=0.6)


def bars(axis, shapes, series):
    """Bars side by side for each shape.

    Args:
      axis: Where to draw.
      shapes: Names along the horizontal axis.
      series: For each label, a dictionary of ratios by shape, with quartiles: (ratio, low, high).
    """
    width = 0.8 / len(series)
    for number, (label, values) in enumerate(series.items()):
        places = [at for at, shape in enumerate(shapes) if shape in values]
        if not places:
            continue
        found = np.array([values[shapes[at]] for at in places])
        left = np.array(places) + (number - (len(series) - 1) / 2) * width
        color = COLORS[number % len(COLORS)]
        # From 1 up or down, on an axis whose zero is infinitely far away.
        axis.bar(left, found[:, 0] - 1.0, width, bottom=1.0, label=label, color=color)
        axis.vlines(left, found[:, 1], found[:, 2], color="black", linewidth=0.8)
    axis.set_xticks(range(len(shapes)))
    axis.set_xticklabels(shapes, rotation=35, ha="right")
    ratio_axis(axis)


def _op_and_variant(row):
    return row.case.op.name, row.case.variant


def ratios(path, rows):
    """Stock/ours: a panel for each op and dtype, with bars for shapes; points if they are many."""
    groups = grouped(rows, _op_and_variant)
    figure, axes = panels(len(groups))
    for axis, ((op, variant), group) in zip(axes, groups.items()):
        threads = grouped(group, in_threads)
        shapes = list(grouped(group, lambda row: row.case.shape))
        if len(shapes) <= 30:
            series = {
                label: {row.case.shape: (row.ratio, *row.quartiles) for row in some}
                for label, some in threads.items()
            }
            bars(axis, shapes, series)
        else:
            for color, (label, some) in zip(COLORS, threads.items()):
                sizes = [row.case.bytes / 2**20 for row in some]
                axis.scatter(sizes, [row.ratio for row in some], s=8, color=color, label=label)
            axis.set_xscale("log")
            axis.set_xlabel("inputs and outputs, MiB")
            ratio_axis(axis)
        axis.set_title(f"{op}, {variant}")
    axes[0].legend(frameon=False)
    figure.suptitle("Times faster than the stock kernel (quartiles of rounds in black)")
    return save(figure, path)


def shares(path, rows):
    """Points of the share of the floor over the size: a panel for each number of threads."""
    groups = grouped(rows, in_threads)
    figure, axes = panels(len(groups), size=(5.2, 4.0))
    colors = dict(zip(grouped(rows, lambda row: row.case.op.name), COLORS))
    markers = dict(zip(grouped(rows, lambda row: row.case.variant), "os^D"))
    for axis, (threads, group) in zip(axes, groups.items()):
        for (op, variant), some in grouped(group, _op_and_variant).items():
            axis.plot(
                [row.case.bytes / 2**20 for row in some],
                [row.share for row in some],
                markers[variant],
                markersize=4,
                color=colors[op],
                label=f"{op}, {variant}",
            )
        axis.set_xscale("log")
        axis.set_xlabel("inputs and outputs, MiB")
        axis.set_ylim(0.0, max(1.0, 1.05 * max(row.share for row in group)))
        axis.yaxis.set_major_formatter(PercentFormatter(1.0))
        axis.grid(linewidth=0.4, alpha=0.6)
        axis.set_title(threads)
    figure.suptitle("Ours: share of what the machine can do at best")
    axes[-1].legend(frameon=False, bbox_to_anchor=(1.02, 1.0), loc="upper left", fontsize=7)
    return save(figure, path)


def _grows(row):
    """What grows in a row of `blockcell_tools.bench.shapes.linear_cases`: the batch, or time."""
    return "in time" if row.case.time is not None and row.case.batch == 1 else "in the batch"


def time_over_rows(path, rows):
    """Time over rows, both axes logarithmic; a panel for each op, and what grows."""
    groups = grouped(rows, lambda row: (*_op_and_variant(row), _grows(row)))
    figure, axes = panels(len(groups), size=(PANEL[0], 3.0))
    for axis, ((op, variant, grows), group) in zip(axes, groups.items()):
        for color, (threads, some) in zip(COLORS, grouped(group, in_threads).items()):
            some = sorted(some, key=lambda row: row.case.rows)
            count = np.array([row.case.rows for row in some])
            for side, style in (("ours", "o-"), ("stock", "x:")):
                times = np.array([getattr(row, side) for row in some]) * 1e6
                label = f"{side}, {threads}"
                axis.plot(count, times, style, markersize=3, color=color, label=label)
            slope = some[-1].ours * 1e6 / count[-1]
            axis.plot(count, slope * count, color=color, linewidth=0.5, alpha=0.6)
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_xlabel(f"rows ({grows})")
        axis.set_ylabel("microseconds")
        axis.grid(linewidth=0.4, alpha=0.6)
        axis.set_title(f"{op}, {variant}, {group[0].case.cell_size} cells")
    axes[0].legend(frameon=False, fontsize=7)
    figure.suptitle("Time of a call; thin: as much a row as at the most rows")
    return save(figure, path)
