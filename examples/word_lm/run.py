"""Times training steps of word models on stock kernels and on blockcell's, side by side.

The graphs were made by TensorFlow 1.15.5 and are left as they are; `README.md` in this folder says
what is measured. Exit code 0 means that the library's kernels ran and that the losses agree, 1 that
they did not, 130 that it was interrupted. What was measured until then is kept.
"""

import pathlib
import sys
from typing import Any, List, NamedTuple

from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import models  # noqa: E402
import text  # noqa: E402
import turns  # noqa: E402
from common import commands, sessions  # noqa: E402
from training import Trainer  # noqa: E402


class Job(NamedTuple):
    """A model to train."""

    title: str
    """What people call it."""
    plan: turns.Plan
    contenders: List[Any]
    """The ways to train it, see `turns.compare`."""


def parser_of(description, sizes, cells, rounds):
    """Returns a parser of what all runners understand.

    Args:
      description: What the runner does.
      sizes: The sizes that it takes by default.
      cells: All kinds of cell.
      rounds: How many rounds it takes by default.
    """
    parser = commands.parser_of(
        description,
        "build/word_lm",
        "results, plots and logs",
    )
    parser.add_argument(
        "--sizes",
        nargs="+",
        choices=list(models.SIZES),
        default=sizes,
        help=f"sizes of the models (default: {' '.join(sizes)})",
    )
    parser.add_argument(
        "--cells", nargs="+", choices=cells, default=cells, help="kinds of cell (default: all)"
    )
    parser.add_argument("--threads", type=int, default=2, help="threads (default: 2)")
    parser.add_argument(
        "--rounds", type=int, default=rounds, help=f"turns of each side (default: {rounds})"
    )
    parser.add_argument(
        "--steps",
        type=int,
        help="training steps of a turn (default: as many as `models.py` says for the size)",
    )
    return parser


def parsed(parser):
    """Parses the command line, and checks what all runners understand."""
    result = commands.parsed(parser)
    for name in ("threads", "rounds", "steps"):
        if getattr(result, name) is not None and getattr(result, name) < 1:
            parser.error(f"--{name} must be 1 or more")
    return result


def arguments():
    """Parses the command line."""
    parser = parser_of(
        "Time training steps of word models on stock kernels and on blockcell's.",
        sizes=["small", "medium"],
        cells=list(models.CELLS),
        rounds=10,
    )
    parser.add_argument(
        "--graphs", nargs="+", type=pathlib.Path, help="files of graphs, instead of the above"
    )
    result = parsed(parser)
    if result.graphs is None:
        result.graphs = [models.meta(cell, size) for size in result.sizes for cell in result.cells]
    for path in result.graphs:
        if not path.is_file():
            parser.error(f"there is no {path}; make_graphs.py makes it, with TensorFlow 1.15")
    return result


def plan_of(size, options):
    """Returns the `turns.Plan` of a size's name."""
    steps = options.steps or models.SIZES.get(size, models.TINY).steps
    return turns.Plan(options.threads, options.rounds, steps)


def job_of(path, options):
    """Returns the `Job` of a graph's file."""
    stem, title = models.stem(path), models.title(path)
    sides = (("stock", sessions.TENSORFLOW), ("ours", sessions.LIBRARY))
    contenders = [
        turns.Contender(f"{stem}-{name}", title, loads, Trainer, (path,)) for name, loads in sides
    ]
    return Job(title, plan_of(stem.rpartition("-")[2], options), contenders)


def measure(console, job, options, words):
    """Trains a model, behind a progress bar; returns its `Result`s."""
    logs = options.output / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[state]}"),
        TimeElapsedColumn(),
    )
    shown = {"console": console, "transient": True, "disable": not console.is_terminal}
    with Progress(*columns, **shown) as progress:
        task = progress.add_task(job.title, total=job.plan.turns, state="starting TensorFlow")

        def done(loss):
            progress.update(task, advance=1, state=f"loss {loss:.3f}")

        library = str(options.library.resolve())
        return turns.compare(job.contenders, library, job.plan, words, logs, done)


def run(console, options, jobs, prefix):
    """Trains all models and returns the exit code. Keeps each result as soon as it is there.

    Args:
      console: Where to print.
      options: Of the command line.
      jobs: List of `Job`.
      prefix: How the names of the files of results begin.
    """
    # Not at the top: the workers import this file, too.
    import report
    import results

    words = text.words()
    found = []
    try:
        for job in jobs:
            new = measure(console, job, options, words)
            found += new
            file = options.output / f"{prefix}-{new[0].tensorflow}.json"
            results.write(file, found)
            report.plot(file.with_suffix(".svg"), found)
            for result in new:
                console.print(escape(report.line(result)), highlight=False, soft_wrap=True)
    finally:
        if found:
            console.print(report.tables(found))
            console.print(report.NOTE, style="dim")
            console.print(f"Results and plot: {escape(str(file))}, .svg", soft_wrap=True)
    failures = [failure for result in found for failure in result.failures]
    return commands.print_failures(console, failures)


def finish(options, jobs, prefix):
    """Runs the jobs and returns the exit code, whatever happens."""
    return commands.call(lambda console, options: run(console, options, jobs, prefix), options)


def main():
    """Command line."""
    options = arguments()
    return finish(options, [job_of(path, options) for path in options.graphs], "tf")


if __name__ == "__main__":
    sys.exit(main())
