"""The table of figures on the front page: of whole models and of rivals, not of single ops."""

from bench.markers import replaced
from blockcell_tools.bench.report import at, geometric_mean, grouped, markdown_table

CAPTION = """\
Speed-up with blockcell: the geometric mean, and the worst row in brackets."""

PARTS = (
    "Training steps",
    "Keras",
    "Inference with Keras",
    "Inference",
    "Peers",
    "Networks made for cuDNN",
)
"""The sections that the table sums up."""


def updated(text, found, about):
    """The front page with a new table; as it is if nothing was measured.

    Args:
      text: The page.
      found: The rows, by `bench.figures.sections.Section`.
      about: What a file says of the machine, or None if there are no files.
    """
    table = _table(found)
    if table is None:
        return text
    where = f"{about['machine']['cpu']}, {about['machine']['cores']} cores, {about['isa']}"
    return replaced(text, "figures", f"{CAPTION}\nMeasured on {where}.\n\n{table}")


def _table(found):
    """A line for each group and rival, with one column for each number of threads."""
    groups = grouped(
        [(s, row) for s, rows in found.items() if s.title in PARTS for row in rows],
        lambda pair: (f"{pair[0].title}, {pair[1].group}", pair[1].rival),
        lambda pair: pair[1],
    )
    if not groups:
        return None
    counts = sorted({row.threads for rows in groups.values() for row in rows})
    heads = ["what", "against", *map(at, counts)]
    lines = []
    for key, rows in groups.items():
        ratios = grouped(rows, lambda row: row.threads, lambda row: row.ratio)
        lines.append([*key, *(_cell(ratios.get(count)) for count in counts)])
    return markdown_table(heads, lines, 2)


def _cell(ratios):
    """The mean and the lowest."""
    return f"{geometric_mean(ratios):.2f} ({min(ratios):.2f})" if ratios else ""
