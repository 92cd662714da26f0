"""The table of figures on the front page: of whole models and of rivals, not of single ops."""

import re
from collections import OrderedDict

from blockcell_tools.bench.report import geometric_mean, markdown_table

CAPTION = """\
How many times as fast it is with blockcell: the geometric mean, and the worst row in brackets."""

BEGIN, END = "<!-- figures: begin -->\n", "<!-- figures: end -->"
"""What stands around it; the rest of the page is left alone."""

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
    pattern = re.escape(BEGIN) + ".*?" + re.escape(END)
    assert re.search(pattern, text, re.DOTALL), f"no {BEGIN.strip()} on the page"
    if table is None:
        return text
    where = f"{about['machine']['cpu']}, {about['machine']['cores']} cores, {about['isa']}"
    new = f"{BEGIN}{CAPTION}\nMeasured on {where}.\n\n{table}\n{END}"
    return re.sub(pattern, lambda _: new, text, flags=re.DOTALL)


def _table(found):
    """A line for each group and rival, with one column for each number of threads."""
    groups, counts = OrderedDict(), set()
    for section, rows in found.items():
        for row in rows if section.title in PARTS else []:
            key = (f"{section.title}, {row.group}", row.rival)
            groups.setdefault(key, OrderedDict()).setdefault(row.threads, []).append(row.ratio)
            counts.add(row.threads)
    if not groups:
        return None
    heads = ["what", "against", *(f"{n} thread{'s' if n > 1 else ''}" for n in sorted(counts))]
    lines = [
        [*key, *(_cell(by_threads.get(count)) for count in sorted(counts))]
        for key, by_threads in groups.items()
    ]
    return markdown_table(heads, lines, 2)


def _cell(ratios):
    """The mean and the lowest."""
    return f"{geometric_mean(ratios):.2f} ({min(ratios):.2f})" if ratios else ""
