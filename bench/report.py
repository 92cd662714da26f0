"""Tables of the results: on the terminal, in Markdown and in JSON."""

import json
import math
import os
from collections import OrderedDict
from typing import Dict, List, NamedTuple, Optional, Tuple

import numpy as np
from rich.table import Table

from bench.ops import Case

COLUMNS = (
    "op",
    "dtype",
    "shape",
    "threads",
    "stock us",
    "ours us",
    "ratio",
    "quartiles",
    "of floor",
    "others",
)
"""Heads of the table; `NOTE` explains them."""

NOTE = (
    "Median time of a call; ratio stock/ours of the medians, and the quartiles of the ratios of "
    "single rounds. Floor: the time that the machine needs at least for the arithmetic or for the "
    "bytes, whichever takes longer, as a share of ours. Others: cores that other processes used "
    "meanwhile; a row where they left fewer cores than it has threads is marked by !, and tells "
    "little."
)
"""What the columns mean."""


TOLERATED = 0.15
"""Cores that others may take from a row before it is marked."""


class Row(NamedTuple):
    """The result for a case at a number of threads; times in seconds a call."""

    case: Case
    threads: int
    stock: float
    ours: float
    quartiles: Tuple[float, float]
    """Of the ratios of single rounds."""
    floor: float
    neighbours: Optional[float]
    """Cores that other processes used meanwhile, if known."""
    rounds: int
    repetitions: int
    """Calls in a round."""
    errors: Dict[str, float]
    """Scaled difference of each output."""

    @property
    def ratio(self) -> float:
        """How many times faster ours is."""
        return self.stock / self.ours

    @property
    def share(self) -> float:
        """Share of the machine's limit that ours reaches."""
        return self.floor / self.ours

    def disturbed(self) -> bool:
        """Whether other processes left noticeably fewer cores than the row has threads."""
        free = len(os.sched_getaffinity(0)) - (self.neighbours or 0.0)
        return free < self.threads - TOLERATED

    def cells(self) -> List[str]:
        """What the tables show of it, in the order of `COLUMNS`."""
        return [
            self.case.op,
            self.case.variant,
            self.case.shape,
            str(self.threads),
            f"{self.stock * 1e6:,.1f}",
            f"{self.ours * 1e6:,.1f}",
            f"{self.ratio:.2f}",
            "{:.2f} to {:.2f}".format(*self.quartiles),
            f"{self.share:.0%}",
            "?"
            if self.neighbours is None
            else f"{self.neighbours:.2f}{'!' if self.disturbed() else ''}",
        ]


def make_row(case, threads, result, limits):
    """The row of a worker's result (`bench.worker.measure`)."""
    stock, ours = np.array(result["stock"]), np.array(result["ours"])
    low, high = np.percentile(stock / ours, [25, 75])
    return Row(
        case=case,
        threads=threads,
        stock=float(np.median(stock)),
        ours=float(np.median(ours)),
        quartiles=(float(low), float(high)),
        floor=limits.floor(case),
        neighbours=result["neighbours"],
        rounds=len(stock),
        repetitions=result["repetitions"],
        errors=result["errors"],
    )


class Mean(NamedTuple):
    """Several rows' ratios in one."""

    op: str
    variant: str
    threads: int
    geometric_mean: float
    lowest: float


def means(rows) -> List[Mean]:
    """The geometric mean and the lowest of the ratios of each op, dtype and number of threads."""
    groups = OrderedDict()
    for row in rows:
        key = (row.case.op, row.case.variant, row.threads)
        groups.setdefault(key, []).append(row.ratio)
    return [
        Mean(*key, math.exp(sum(map(math.log, ratios)) / len(ratios)), min(ratios))
        for key, ratios in groups.items()
    ]


_MEAN_COLUMNS = ("op", "dtype", "threads", "geometric mean", "lowest")


def _mean_cells(mean) -> List[str]:
    return [
        mean.op,
        mean.variant,
        str(mean.threads),
        f"{mean.geometric_mean:.2f}",
        f"{mean.lowest:.2f}",
    ]


_LIMIT_COLUMNS = ("threads", "read: working set", "GB/s", "float32 multiply-adds: GFLOP/s")


def _limit_cells(limits) -> List[List[str]]:
    return [
        [
            str(threads),
            f"{size / 2**20:g} MiB",
            f"{limit.bytes_per_second[size] / 1e9:.0f}",
            f"{limit.flops_per_second / 1e9:.0f}",
        ]
        for threads, limit in limits.items()
        for size in sorted(limit.bytes_per_second)
    ]


def print_tables(console, rows):
    """Prints the results and their means."""
    results = Table(title="Stock and ours, side by side", caption=NOTE)
    for column in COLUMNS:
        text = column in COLUMNS[:2]
        results.add_column(column, justify="left" if text else "right", no_wrap=True)
    previous = None
    for row in rows:
        group = (row.case.op, row.case.variant, row.threads)
        if previous not in (None, group):
            results.add_section()
        previous = group
        style = "red" if row.ratio < 1.0 else None
        results.add_row(*row.cells(), style=style)
    console.print(results)

    summary = Table(title="Ratios over all shapes")
    for column in _MEAN_COLUMNS:
        text = column in _MEAN_COLUMNS[:2]
        summary.add_column(column, justify="left" if text else "right", no_wrap=True)
    for mean in means(rows):
        summary.add_row(*_mean_cells(mean))
    console.print(summary)


def write_json(path, about, limits, rows):
    """Writes everything that was measured; times in seconds."""
    content = dict(about)
    content["limits"] = [
        {
            "threads": threads,
            "flops_per_second": limit.flops_per_second,
            "read": [
                {"bytes": size, "bytes_per_second": limit.bytes_per_second[size]}
                for size in sorted(limit.bytes_per_second)
            ],
        }
        for threads, limit in limits.items()
    ]
    content["rows"] = [_json_row(row) for row in rows]
    content["means"] = [mean._asdict() for mean in means(rows)]
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _json_row(row):
    fields = OrderedDict(row.case._asdict())
    fields.update(row._asdict())
    del fields["case"]
    fields.update(ratio=row.ratio, share_of_floor=row.share)
    fields.update(disturbed=row.disturbed())
    fields.update(flops=row.case.flops, bytes=row.case.bytes)
    return fields


def write_markdown(path, about, limits, rows):
    """Writes the tables for people to read."""
    machine, versions = about["machine"], about["versions"]
    named = ", ".join(f"{name} {version}" for name, version in versions.items())
    parts = [
        "# Stock and ours, side by side",
        f"{about['date']}: {machine['cpu']}, {machine['cores']} cores, {machine['system']}, "
        f"instruction set {about['isa']}, load average {machine['load_average']:.1f} at the start. "
        f"{named}.",
        f"`{about['command']}`",
        _markdown(COLUMNS, [row.cells() for row in rows], 2),
        NOTE,
        _markdown(_MEAN_COLUMNS, [_mean_cells(mean) for mean in means(rows)], 2),
        "What the machine can do, measured before and after:",
        _markdown(_LIMIT_COLUMNS, _limit_cells(limits), 0),
    ]
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _markdown(columns, lines, texts):
    """A Markdown table whose first `texts` columns are text, and the others numbers."""
    rule = ["---" if at < texts else "---:" for at in range(len(columns))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [columns, rule, *lines])
