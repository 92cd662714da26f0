"""Tables of the results: on the terminal, in Markdown and in JSON."""

import json
import math
import os
from collections import OrderedDict
from typing import Dict, List, NamedTuple, Optional, Tuple

import numpy as np

from blockcell.cli.console import table
from blockcell_tools.bench import page
from blockcell_tools.bench.machine import in_words
from blockcell_tools.bench.ops import Workload

NOTE = (
    "Median time of a call; median and quartiles of the ratios stock/ours of single rounds. "
    "Floor: the time that the machine needs at least for the arithmetic or for the "
    "bytes, whichever takes longer, as a share of ours. Others: cores that other processes used "
    "meanwhile; a row where they left fewer cores than it has threads is marked by !, and tells "
    "little."
)
"""What the columns of the results mean."""

MEMORY_NOTE = (
    "A step forward and backward, each side in a process of its own. Resident: the most that the "
    "process had resident during the step above what it had before (TensorFlow, inputs, weights). "
    "Allocated: the same of TensorFlow's allocator. Of each kernel, what the allocator gave it at "
    "its peak. MiB."
)
"""What the columns of the memory table mean."""

PACKED_NOTE = (
    "Weights: the matrices of an op in float32. float32 and int8: the packed copies that its "
    "kernel keeps if they are constants."
)
"""What the columns of the table of packed weights mean."""

TOLERATED = 0.15
"""Cores that others may take from a row before it is marked."""


def disturbed(neighbours, threads):
    """Whether other processes left noticeably fewer cores than so many threads need."""
    free = len(os.sched_getaffinity(0)) - (neighbours or 0.0)
    return free < threads - TOLERATED


def at(threads):
    """A number of threads, in words."""
    return f"{threads} thread{'s' if threads > 1 else ''}"


class Row(NamedTuple):
    """The result for a case at a number of threads; times in seconds a call."""

    case: Workload
    threads: int
    stock: float
    ours: float
    ratio: float
    """How many times faster ours is: the median of the ratios of single rounds."""
    quartiles: Tuple[float, float]
    """Of the same ratios."""
    floor: Optional[float]
    """The least that the machine needs; None if its limits are not known."""
    neighbours: Optional[float]
    """Cores that other processes used meanwhile, if known."""
    rounds: int
    repetitions: int
    """Calls in a round."""
    errors: Dict[str, float]
    """Scaled difference of each output."""

    @property
    def share(self) -> Optional[float]:
        """Share of the machine's limit that ours reaches, if that is known."""
        return None if self.floor is None else self.floor / self.ours

    def disturbed(self) -> bool:
        """Whether other processes left noticeably fewer cores than the row has threads."""
        return disturbed(self.neighbours, self.threads)

    def named(self) -> str:
        """What it measured, in words."""
        return f"{self.case}, {at(self.threads)}"

    def cells(self) -> List[str]:
        """What the tables show of it, in the order of `COLUMNS`."""
        return [
            self.case.op.name,
            self.case.variant,
            self.case.shape,
            str(self.threads),
            f"{self.stock * 1e6:,.1f}",
            f"{self.ours * 1e6:,.1f}",
            f"{self.ratio:.2f}",
            "{:.2f} to {:.2f}".format(*self.quartiles),
            percent(self.share),
            others(self.neighbours, self.threads),
        ]


COLUMNS = (
    *("op", "dtype", "shape", "threads", "stock us", "ours us", "ratio", "quartiles"),
    *("of floor", "others"),
)
"""Heads of the table of `Row`s."""


def percent(share):
    """A cell: a share, if it is known."""
    return "?" if share is None else f"{share:.0%}"


def others(neighbours, threads):
    """A cell: the cores that others used, and a mark if they were too many."""
    if neighbours is None:
        return "?"
    return f"{neighbours:.2f}{'!' if disturbed(neighbours, threads) else ''}"


def ratio_quartiles(rival, ours):
    """The median of the ratios of single rounds, and their quartiles, between which it lies."""
    low, median, high = np.percentile(np.array(rival) / np.array(ours), [25, 50, 75])
    return float(median), (float(low), float(high))


def with_quartiles(ratio, quartiles):
    """A cell: a ratio and its quartiles."""
    return "{:.2f} ({:.2f} to {:.2f})".format(ratio, *quartiles)


def make_row(case, threads, result, limits):
    """The row of what `blockcell_tools.bench.worker.measure` returns; `limits` may be None."""
    ratio, quartiles = ratio_quartiles(result["stock"], result["ours"])
    return Row(
        case=case,
        threads=threads,
        stock=float(np.median(result["stock"])),
        ours=float(np.median(result["ours"])),
        ratio=ratio,
        quartiles=quartiles,
        floor=None if limits is None else limits.floor(case),
        neighbours=result["neighbours"],
        rounds=len(result["stock"]),
        repetitions=result["repetitions"],
        errors=result["errors"],
    )


class Mean(NamedTuple):
    """Several rows' ratios in one."""

    op: str
    variant: str
    threads: int
    rows: int
    geometric_mean: float
    lowest: float
    below_one: int

    def cells(self) -> List[str]:
        """What the tables show of it, in the order of `MEAN_COLUMNS`."""
        counts = [str(self.threads), str(self.rows)]
        ratios = [f"{self.geometric_mean:.2f}", f"{self.lowest:.2f}", str(self.below_one)]
        return [self.op, self.variant, *counts, *ratios]


MEAN_COLUMNS = ("op", "dtype", "threads", "rows", "geometric mean", "lowest", "below 1")
"""Heads of the table of `Mean`s."""


def geometric_mean(ratios):
    """The geometric mean of numbers above zero."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def grouped(items, key, of=lambda item: item):
    """Lists of the items by their key, in the order in which the keys come up.

    Args:
      items: The items.
      key: Returns an item's key.
      of: Returns what the list has of an item.
    """
    groups = OrderedDict()
    for item in items:
        groups.setdefault(key(item), []).append(of(item))
    return groups


def means(rows) -> List[Mean]:
    """The geometric mean and the lowest of the ratios of each op, dtype and number of threads."""
    groups = grouped(
        sorted(rows, key=lambda row: row.threads),
        lambda row: (row.case.op.name, row.case.variant, row.threads),
        lambda row: row.ratio,
    )
    return [
        Mean(
            *(op, variant, threads, len(ratios)),
            *(geometric_mean(ratios), min(ratios), sum(ratio < 1.0 for ratio in ratios)),
        )
        for (op, variant, threads), ratios in groups.items()
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


_MEMORY_COLUMNS = ("kernels", "shape", "threads", "before", "resident", "allocated", "of each")


def _memory_cells(peak) -> List[str]:
    def mib(count):
        return f"{count / 2**20:,.1f}"

    kernels = ", ".join(f"{name} {mib(most)}" for name, (most, _) in peak.kernels.items())
    allocated = "?" if peak.allocated is None else mib(peak.allocated)
    numbers = [str(peak.threads), mib(peak.before), mib(peak.peak), allocated]
    return [peak.side, peak.shape, *numbers, kernels]


_PACKED_COLUMNS = ("op", "shape", "threads", "weights", "float32", "int8", "int8 / weights")


def _packed_cells(found) -> List[str]:
    sizes = [f"{count / 2**20:,.2f}" for count in (found.weights, found.float32, found.int8)]
    ratio = f"{found.int8 / found.weights:.2f}"
    return [found.op, found.shape, str(found.threads), *sizes, ratio]


_NOTES = {_MEMORY_COLUMNS: MEMORY_NOTE, _PACKED_COLUMNS: PACKED_NOTE}


def rich_table(title, columns, lines, texts, note=None, styles=None, sections=None):
    """A `blockcell.cli.console.table` whose cells stay in one line each.

    Where the key of a line in `sections` is another than that of the line before, a rule is drawn.
    """
    made = table(title, columns, lines, texts, note, styles)
    for column in made.columns:
        column.no_wrap = True
    for row, section, after in zip(made.rows, sections or [], (sections or [])[1:]):
        row.end_section = section != after
    return made


def markdown_table(columns, lines, texts):
    """A Markdown table whose first `texts` columns are text, and the others numbers."""
    rule = ["---" if at < texts else "---:" for at in range(len(columns))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [columns, rule, *lines])


def below_one(rows):
    """Rows where ours is slower, the slowest first."""
    return sorted((row for row in rows if row.ratio < 1.0), key=lambda row: row.ratio)


def print_tables(console, found):
    """Prints the results, their means, the slower ones and the memory."""
    rows = found.rows
    styles = ["red" if row.ratio < 1.0 else None for row in rows]
    sections = [(row.case.op.name, row.case.variant, row.threads) for row in rows]
    if found.mode == "random":
        sections = [(row.case[3:], row.threads) for row in rows]
    (_, *results), (_, *ratios), *more = _tables(found)
    console.print(rich_table(found.title, *results, NOTE, styles, sections))
    console.print(rich_table("Ratios over all shapes", *ratios))
    for title, *content in more:
        console.print(rich_table(title, *content, _NOTES.get(content[0])))
    for remark in _none_below_one(rows):
        console.print(remark)


def json_limits(limits):
    """The machine's limits, for JSON."""
    return [
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


def as_json(found):
    """Everything that was measured, for JSON; times in seconds, sizes in bytes."""
    content = dict(found.about, title=found.title)
    content["limits"] = json_limits(found.limits)
    content["rows"] = [_json_row(row, found.limits.get(row.threads)) for row in found.rows]
    content["means"] = [mean._asdict() for mean in means(found.rows)]
    content["memory"] = [peak._asdict() for peak in found.peaks]
    content["packed_weights"] = [one._asdict() for one in found.packed]
    content["left_out"] = found.left_out
    return content


def write_json(path, found):
    """Writes the same."""
    path.write_text(json.dumps(as_json(found), indent=1) + "\n", encoding="utf-8")


def _json_row(row, limits):
    case = row.case
    fields = OrderedDict(case._asdict(), op=case.op.name)
    fields.update(row._asdict())
    del fields["case"]
    return dict(fields, **json_of_case(case, row, row.ours, limits))


def json_of_case(case, row, ours, limits):
    """What follows from a row of a case, where ours took `ours` seconds; `limits` may be None."""
    fields = {
        "share_of_floor": row.share,
        "disturbed": disturbed(row.neighbours, row.threads),
        "flops": case.flops,
        "bytes": case.bytes,
    }
    if limits is not None:
        fields["share_of_peak"] = case.flops / ours / limits.flops_per_second
    return fields


def where_and_when(about):
    """A paragraph: date, machine and versions; and the command."""
    machine, versions = about["machine"], about["versions"]
    named = ", ".join(f"{name} {version}" for name, version in versions.items())
    if about.get("commit"):
        named += f", commit {about['commit']}"
    return [
        f"{about['date']}: {in_words(machine)}, "
        f"instruction set {about['isa']}, load average {machine['load_average']:.1f} at the start. "
        f"{named}.",
        f"`{about['command']}`",
    ]


def limit_parts(limits, paragraph=str, make_table=markdown_table):
    """What the machine can do, for Markdown or for what else paragraphs and tables are made for."""
    if not limits:
        return [
            paragraph("What the machine can do was not measured: that needs cargo, or a wheel.")
        ]
    return [
        paragraph("What the machine can do, measured before and after:"),
        make_table(_LIMIT_COLUMNS, _limit_cells(limits), 0),
        *(paragraph(_cores(threads, limits)) for threads in limits if threads > min(limits) == 1),
    ]


def _cores(threads, limits):
    cores = limits[threads].cores(limits[1])
    return f"{threads} threads have {cores:.1f} times the multiply-adds of one: so many real cores."


def _tables(found):
    """Title, columns, lines and number of text columns of each table of a report."""
    rows, slower = found.rows, below_one(found.rows)
    yield "", COLUMNS, [row.cells() for row in rows], 2
    yield "", MEAN_COLUMNS, [mean.cells() for mean in means(rows)], 2
    if slower:
        yield "Below 1.0", COLUMNS, [row.cells() for row in slower], 2
    if found.peaks:
        lines = [_memory_cells(peak) for peak in found.peaks]
        yield "Peak memory of a training step, MiB", _MEMORY_COLUMNS, lines, 2
    if found.packed:
        lines = [_packed_cells(one) for one in found.packed]
        yield "Packed constant weights, MiB", _PACKED_COLUMNS, lines, 2


def _none_below_one(rows):
    """The remark that no row is slower, if it is true."""
    return [] if below_one(rows) else [f"None of {len(rows)} rows is below 1.0."]


def _parts(found, paragraph, pictures, make_table):
    """A report, of what makes paragraphs and tables, with pictures after the first lines."""
    parts = [*map(paragraph, where_and_when(found.about)), *pictures]
    for title, *content in _tables(found):
        parts += [paragraph(title + ":")] * bool(title) + [make_table(*content)]
    remarks = _none_below_one(found.rows)
    if found.left_out:
        remarks += [f"Left out, as the library has no kernel: {', '.join(found.left_out)}."]
    remarks += [NOTE, *([MEMORY_NOTE] if found.peaks else [])]
    remarks += [PACKED_NOTE] if found.packed else []
    return [*parts, *map(paragraph, remarks), *limit_parts(found.limits, paragraph, make_table)]


def write_markdown(path, found, images):
    """Writes the tables for people to read, and the plots by the names of their files."""
    pictures = [f"![{name}]({name})" for name in images]
    parts = [f"# {found.title}", *_parts(found, str, pictures, markdown_table)]
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def write_page(path, found, images):
    """Writes the same as one HTML page, with the plots (PNG files) inside."""
    parts = _parts(found, page.paragraph, [page.image(image) for image in images], page.table)
    page.write(path, found.title, parts)
