"""The files that a benchmark writes when it is done."""

import os

from blockcell_tools.bench import report, run


def write(folder, found, console):
    """Writes JSON, Markdown, plots and the page, named after what was measured.

    Args:
      folder: Their folder; it is made if it is not there.
      found: What `run.measure` has returned.
      console: It is told the names of the files.
    """
    stem = run.stem(found.about, found.mode)
    folder.mkdir(parents=True, exist_ok=True)
    report.write_json(folder / (stem + ".json"), found)
    drawn = _plots(folder, stem, found, console)
    report.write_markdown(folder / (stem + ".md"), found, [path.name for path in drawn])
    pictures = [path.with_suffix(".png") for path in drawn]
    report.write_page(folder / (stem + ".html"), found, pictures)
    endings = (".json", ".md", ".html", ".rows.jsonl")
    names = [stem + ending for ending in endings] + [path.name for path in drawn + pictures]
    console.print(f"Written to {os.path.relpath(folder)}: {', '.join(names)}", soft_wrap=True)


def _plots(folder, stem, found, console):
    """Draws the plots, where matplotlib is there; returns the SVG files' paths."""
    try:
        from blockcell_tools.bench import plots
    except ImportError:
        console.print("No plots: they need matplotlib (pip install matplotlib).")
        return []
    if found.mode == "linear":
        return [plots.time_over_rows(folder / (stem + ".svg"), found.rows)]
    drawn = [plots.ratios(folder / (stem + "-ratio.svg"), found.rows)]
    if found.limits:
        drawn.append(plots.shares(folder / (stem + "-floor.svg"), found.rows))
    return drawn
