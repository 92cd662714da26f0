"""Writes the table of published architectures: `python -m bench.zoo.page --input build/bench`."""

import argparse
import json
import subprocess
from pathlib import Path

from bench.markers import replaced
from bench.zoo.__main__ import of_ours
from bench.zoo.nets import NETS
from blockcell_tools.bench.report import at, disturbed, grouped, markdown_table

PAGE = Path("docs") / "graphs.md"


def main():
    """Reads what `bench.zoo` has written for each TensorFlow, and changes the page."""
    parser = argparse.ArgumentParser(prog="python -m bench.zoo.page", description=__doc__)
    parser.add_argument("--input", type=Path, default=Path("build") / "bench", metavar="FOLDER")
    files = sorted(parser.parse_args().input.glob("zoo-*.json"))
    found = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    words = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(words, stdout=subprocess.PIPE, text=True).stdout.strip()
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(replaced(text, "architectures", part(found, commit)), encoding="utf-8")


def part(found, commit):
    """What stands on the page.

    Args:
      found: What each TensorFlow has measured, as the files have it.
      commit: Of the sources.
    """
    versions = [about["versions"]["tensorflow"] for about in found]
    rows = grouped(
        [(version, row) for version, about in zip(versions, found) for row in about["rows"]],
        lambda pair: pair[1]["name"],
    )
    first = found[0]
    where = (
        f"Measured at commit {commit}, {first['date']}, on {first['machine']['cpu']}, "
        f"{first['machine']['cores']} virtual processors, {at(first['rows'][0]['threads'])}: "
        "median milliseconds of a call without and with the library, of processes in turns, and "
        "the median of their ratios. A ratio with ! was measured while other processes used the "
        "processors, and is unreliable."
    )
    heads = ["architecture", "work", "size", "on the kernels", *versions]
    lines = [
        [net.words, net.work, net.shape, *_cells(dict(rows[net.name]), versions)]
        for net in NETS
        if net.name in rows
    ]
    return f"{where}\n\n{markdown_table(heads, lines, 4)}"


def _cells(rows, versions):
    """What runs on the kernels, and the times of each TensorFlow."""
    ours = list(dict.fromkeys(of_ours(row["rewritten"]) for row in rows.values()))
    return ["; or ".join(ours), *(_times(rows.get(version)) for version in versions)]


def _times(row):
    if row is None:
        return ""
    mark = "!" if disturbed(row["neighbours"], row["threads"]) else ""
    return f"{row['theirs'] * 1e3:.3g} / {row['ours'] * 1e3:.3g} = {row['ratio']:.2f}{mark}"


if __name__ == "__main__":
    main()
