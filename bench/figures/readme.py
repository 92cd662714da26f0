"""README's table and chart, from the overview of the page of figures: whole models and rivals."""

import re
from typing import List, NamedTuple

from bench.markers import replaced
from blockcell_tools import charts
from blockcell_tools.bench.report import at, grouped, markdown_table

CAPTION = """\
How many times as fast it is with blockcell: the geometric mean of the rows, with the worst row in
brackets. Below 1 is slower. Small batches are those of 1 to 8.
{where}"""

_FEW, _MORE = ", batches of 1 to 8", ", larger batches"
TABLE = (
    ("Training steps, TensorFlow 1.15", "Training steps", "TensorFlow 1.15.5", "TensorFlow"),
    ("Training steps, TensorFlow 2.21", "Training steps", "TensorFlow 2.21.0", "TensorFlow"),
    ("Training by Keras's `fit`", "Keras", "TensorFlow 2.21.0", "Keras"),
    ("Keras's `predict`, small batches", "Inference with Keras", "predict" + _FEW, "Keras"),
    ("Frozen graphs, small batches", "Inference", "TensorFlow 2.21.0" + _FEW, "TensorFlow"),
    ("LSTM layer, forward and backward", "Peers", "LSTM, forward+backward" + _MORE, "PyTorch"),
    ("LSTM inference, small batches", "Peers", "LSTM, inference" + _FEW, "ONNX Runtime"),
    ("LSTM inference, larger batches", "Peers", "LSTM, inference" + _MORE, "ONNX Runtime"),
)
"""Rows of the table: their names, and the first three columns of the overview."""

CHART = TABLE[:3] + TABLE[4:]


class Mean(NamedTuple):
    """A line of the overview."""

    key: tuple
    """Part, group and rival."""
    threads: int
    mean: float
    lowest: float


def overview(page) -> List[Mean]:
    """The lines of the overview on the page."""
    section = page.partition("\n## Overview\n")[2].partition("\n## ")[0]
    lines = [line.strip("| ").split(" | ") for line in section.splitlines() if line[:2] == "| "]
    return [Mean(tuple(c[:3]), int(c[3]), float(c[5]), float(c[6])) for c in lines[2:]]


def updated(text, page):
    """README with a new table; as it is if nothing was measured."""
    found = _found(TABLE, overview(page))
    if not found:
        return text
    counts = sorted({mean.threads for _, means in found for mean in means})
    lines = []
    for (name, _, _, rival), means in found:
        by_threads = {mean.threads: f"{mean.mean:.2f} ({mean.lowest:.2f})" for mean in means}
        lines.append([name, rival, *(by_threads.get(count, "") for count in counts)])
    table = markdown_table(["what", "against", *map(at, counts)], lines, 2)
    caption = CAPTION.format(where=_where(page))
    return replaced(text, "figures", f"{caption}\n\n{table}")


def chart(page):
    """The chart, as SVG."""
    groups = []
    for (name, _, _, rival), means in _found(CHART, overview(page)):
        bars = [charts.Bar(one.mean, f"{one.mean:.2f} ({one.lowest:.2f})") for one in means]
        names = name.replace("`", "")
        groups += [(f"{names} / {rival}", bars)]
    counts = ("1 thread", "2 threads")
    return charts.bars(_on_both(groups, len(counts)), counts, mark=1.0)


def _on_both(groups, count):
    """The groups with a bar for each number of threads; what was measured on one has no other."""
    empty = charts.Bar(0.0, "not measured")
    return [(name, [empty] * (count - len(bars)) + bars) for name, bars in groups]


def _found(wanted, means):
    """The rows of a table that the overview has, with their means by threads."""
    groups = grouped(means, lambda mean: mean.key)
    return [(row, groups[row[1:]]) for row in wanted if row[1:] in groups]


def _where(page):
    """Date and machine, from the first line of the page."""
    found = re.search(
        r"^(\d{4}-\d\d-\d\d)[^:]*:\d\d UTC.*? UTC: (.*?), Linux.*?$", page, re.MULTILINE
    )
    if not found:
        return ""
    isa = re.search(r"instruction set (\w+)", page)
    return f"Measured on {found[1]} on {found[2]}" + (f" ({isa[1]})." if isa else ".")
