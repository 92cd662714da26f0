"""A comparison in tables and lines, on the terminal and as an HTML page."""

from pathlib import Path
from typing import Any, Iterator, List

from blockcell_tools import charts
from blockcell_tools.bench import page
from blockcell_tools.bench.report import where_and_when
from blockcell_tools.comparison.results import Found, Row

COLUMNS = ("step", "threads", "steps", "ms: without", "ms: with", "times as fast", "quartiles")
TEXTS = 1
"""How many of these are text."""
NOTE = (
    "Medians, with quartiles in brackets. Times as fast: the median of the ratios of single steps."
)
_MOST_STAYS = 6
"""The number of reasons that are printed."""
_MOST_LAYERS = 12
"""The same for layers."""


def cells(found: Found) -> List[List[str]]:
    """The lines of the table."""
    return [_cells(row) for row in found.rows]


def _cells(row: Row) -> List[str]:
    times = [
        "{:.3g} ({:.3g} to {:.3g})".format(*(1e3 * n for n in (one.median, *one.quartiles)))
        for one in (row.without, row.ours)
    ]
    threads = "-" if row.threads is None else str(row.threads)
    ratio, spread = f"{row.ratio:.2f}", "{:.2f} to {:.2f}".format(*row.quartiles)
    return [row.step, threads, str(row.steps), *times, ratio, spread]


def lines(found: Found) -> Iterator[str]:
    """The lines below the table."""
    if found.seconds:
        yield "The whole program: {without:.1f} s without, {ours:.1f} s with.".format(
            **found.seconds
        )
    memory = {side: count / 2**20 for side, count in found.memory.items()}
    yield "Peak memory of the process: {without:,.0f} MiB without, {ours:,.0f} MiB with.".format(
        **memory
    )
    kept = found.about.get("kept_weight_bytes")
    if kept:
        yield f"Cached packed weights: {kept / 2**20:,.1f} MiB."
    yield from _of_kernels(found)
    yield from _of_numbers(found)
    yield from found.about.get("notes", [])


def _of_kernels(found: Found) -> Iterator[str]:
    unit = "in all" if found.kind == "program" else "in each step"
    ran = ", ".join(f"{op} {count:,}" for op, count in sorted(found.ran.items()))
    yield f"On the kernels, calls {unit}: {ran or 'none'}."
    for line in found.stays[:_MOST_STAYS]:
        yield f"Not on the kernels: {line}"
    more = len(found.stays) - _MOST_STAYS
    if more > 0:
        yield f"... and {more} more: --json lists all."


def _of_numbers(found: Found) -> Iterator[str]:
    for name, sides in found.losses.items():
        ends = [f"{side[0]:.5g} to {side[-1]:.5g}" for side in (sides["without"], sides["ours"])]
        yield f"{name}: {ends[0]} without, {ends[1]} with."
    yield from _of_int8(found)
    worst = found.worst
    if worst is not None:
        of = "int8" if found.in_int8 else "rounding"
        judged = f"within the limit of {of}" if found.agrees else f"ABOVE THE LIMIT OF {of.upper()}"
        mean = "" if worst.mean is None else f", mean {worst.mean:.1e}"
        yield (
            f"Largest difference: {worst.largest:.1e} of the largest element{mean} "
            f"({worst.what}), {judged}."
        )


def _of_int8(found: Found) -> Iterator[str]:
    for layer, errors in list(found.layers.items())[:_MOST_LAYERS]:
        yield (
            f"In int8: {layer} ({errors['op']}), largest error {errors['largest']:.1e} of its "
            f"largest element, mean {errors['mean']:.1e}."
        )
    more = len(found.layers) - _MOST_LAYERS
    if more > 0:
        yield f"... and {more} more layers: --json lists all."
    for one in found.answers:
        yield f"Changed predictions: {one.changed:,} of {one.of:,} ({one.what})."


def write_page(path: Path, title: str, found: Found) -> None:
    """Writes one HTML page, with charts."""
    groups = [
        (
            row.step if row.threads is None else f"{row.step}, {row.threads} threads",
            [
                charts.Bar(1e3 * one.median, f"{1e3 * one.median:.3g} ms", _in_ms(one))
                for one in (row.without, row.ours)
            ],
        )
        for row in found.rows
    ]
    parts: List[Any] = [page.paragraph(found.advice())]
    sides = ("without blockcell", "with blockcell")
    parts += [charts.bars(groups, sides)] if groups else []
    parts += [page.table(COLUMNS, cells(found), TEXTS), page.paragraph(NOTE)]
    parts += [page.paragraph(line) for line in lines(found)]
    for name, losses in found.losses.items():
        parts.append(charts.lines(name, list(zip(sides, (losses["without"], losses["ours"])))))
    parts += [page.paragraph(text) for text in where_and_when(found.about)]
    page.write(path, title, parts)


def _in_ms(times: Any) -> Any:
    low, high = times.quartiles
    return 1e3 * low, 1e3 * high
