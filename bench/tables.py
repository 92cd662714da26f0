"""Rows of a comparison in turns, and the files that they are written to."""

import json

import numpy as np

from blockcell_tools.bench import machine
from blockcell_tools.bench.report import markdown_table, others, ratio_quartiles

COLUMNS = ("threads", "rival", "ours ms", "rival ms", "ratio", "quartiles", "others")
"""Those that `cells` fills."""


def row(net, threads, rival, turns):
    """What is known of a net, a named tuple, against a rival; times in seconds a call."""
    ours, theirs = turns.seconds["ours"], turns.seconds[rival]
    ratio, quartiles = ratio_quartiles(theirs, ours)
    return {
        **net._asdict(),
        "threads": threads,
        "rival": rival,
        "ours": float(np.median(ours)),
        "theirs": float(np.median(theirs)),
        "ratio": ratio,
        "quartiles": quartiles,
        "rounds": len(ours),
        "error": turns.errors[rival],
        "neighbours": machine.cores_of(turns.spent),
    }


def cells(row):
    """What the tables show of a row, in the order of `COLUMNS`."""
    return [
        str(row["threads"]),
        row["rival"],
        f"{row['ours'] * 1e3:.3g}",
        f"{row['theirs'] * 1e3:.3g}",
        f"{row['ratio']:.2f}",
        "{:.2f} to {:.2f}".format(*row["quartiles"]),
        others(row["neighbours"], row["threads"]),
    ]


def write(stem, about, rows, table, note):
    """Writes rows as JSON, and as a table in Markdown: its columns, cells, and columns of words."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    content = dict(about, rows=rows)
    stem.with_suffix(".json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    text = f"{markdown_table(*table)}\n\n{note}\n"
    stem.with_suffix(".md").write_text(text, encoding="utf-8")
