"""Trains character language models with stock kernels and with blockcell's, side by side.

Some training graphs were made by TensorFlow 1.15.5 and are left as they are, others are built here;
`README.md` in this folder says what is shown. Exit code 0 means that the library's kernels ran and
that the losses agree, 1 that they did not, 130 that it was interrupted.
"""

import contextlib
import pathlib
import sys

from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import models  # noqa: E402
import text  # noqa: E402
from common import commands  # noqa: E402
from common.workers import Worker  # noqa: E402
from training import Alone, Trainer  # noqa: E402

TRACED = 8
"""Steps that are traced after the measured ones; the first of them is not counted."""
EXPLANATION = (
    "Each training is a process of its own; their steps alternate. Losses are in nats a byte."
    " Ratio: stock / blockcell. Slope: how fast the loss changes along the gradient of the layer's"
    " weights before the first step, by finite differences, divided by what the gradient says."
    " Times within ops, and their share of the step: calls wait for each other, so it is the time"
    " within them, and that divided by the time from the start of the step's first op to the end"
    f" of its last one; medians of {TRACED - 1} traced steps."
)


def arguments():
    """Parses the command line."""
    parser = commands.parser_of(
        "Train language models with stock kernels and with blockcell's, and compare.",
        "build/demo",
        "plots and logs",
    )
    parser.add_argument("--steps", type=int, default=150, help="steps a model (default: 150)")
    names = {model.name: model for model in models.MODELS}
    parser.add_argument(
        "--models", nargs="+", choices=names, default=list(names), help="which ones (default: all)"
    )
    parser.add_argument(
        "--precision",
        choices=(models.HIGHEST, *models.LOWER),
        default=models.HIGHEST,
        help="how precise blockcell's products are (default: highest)",
    )
    parser.add_argument(
        "--plot", type=pathlib.Path, help="file for the losses of all models (.svg or .png)"
    )
    parser.add_argument(
        "--verbose",
        action="store_true",
        help="add a table for each model, and what shows which kernel ran",
    )
    result = commands.parsed(parser)
    if result.steps < 20:
        parser.error("--steps must be 20 or more")
    result.models = [names[name] for name in result.models]
    return result


@contextlib.contextmanager
def started(model, library, precision, logs):
    """Starts a worker for each setting of a model, and ends them in any case."""
    with contextlib.ExitStack() as stack:
        workers = []
        for setting in model.settings:
            name = f"{model.name}-{setting.name}"
            level = precision if setting == model.blockcell else models.HIGHEST
            worker = Worker(name, logs / f"{name}.log", Trainer, model, setting, library, level)
            workers.append(stack.enter_context(worker))
        yield workers


def refusal_of(model, logs):
    """What TensorFlow alone says to a model's graph; None if it runs it."""
    name = f"{model.name}-alone"
    with Worker(name, logs / f"{name}.log", Alone, model) as worker:
        return worker.ask("refusal")


def compare(console, model, batches, library, options, logs):
    """Trains a model in all its settings.

    Args:
      console: Where to draw the progress bar.
      model: The `models.Model`.
      batches: What each step is fed; they are used again when they are used up.
      library: Path of libblockcell.so.
      options: How many steps to train, and the precision of blockcell's products.
      logs: Folder for what the processes write.

    Returns:
      A `report.Comparison`.
    """
    from report import Comparison, Training  # not for the workers, which import this file too

    steps, precision = options.steps, options.precision
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[state]}"),
        TimeRemainingColumn(),
        console=console,
        refresh_per_second=4,
    )
    refusal = refusal_of(model, logs) if model.refused else None
    with progress, started(model, library, precision, logs) as workers:
        task = progress.add_task(model.title, total=steps + TRACED, state="starting TensorFlow")
        ready = [worker.ask("ready") for worker in workers]
        progress.update(task, state="first step")
        trainings = [
            Training(setting, its, worker.ask("slopes", batches[0]), [], [])
            for setting, its, worker in zip(model.settings, ready, workers)
        ]
        for step in range(steps + TRACED):
            batch = batches[step % len(batches)]
            traced = step >= steps
            kind = "traced_step" if traced else "step"
            for turn in range(len(workers)):  # each goes first in its turn
                which = (step + turn) % len(workers)
                its = trainings[which].traced if traced else trainings[which].steps
                its.append(workers[which].ask(kind, batch))
            loss = trainings[0].steps[-1].loss
            progress.update(task, advance=1, state=f"loss {loss:.3f}")
    for training in trainings:
        del training.traced[0]  # it pays for setting the tracing up
    return Comparison(model, *trainings, refusal=refusal, precision=precision)


def run(console, options):
    """Runs the demo and returns its exit code."""
    import report

    logs = options.output / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    corpus = text.corpus()
    windows, lines = text.windows(corpus), text.lines(corpus)
    console.print(
        f"Text: {len(corpus):,} bytes of the Python standard library; a step reads {models.BATCH} x"
        f" {models.TIME} of them, or {models.BATCH} lines of up to {models.LINE_TIME}"
    )
    comparisons = []
    library = str(options.library.resolve())
    for model in options.models:
        batches = lines if model.lines else windows
        comparison = compare(console, model, batches, library, options, logs)
        comparisons.append(comparison)
        report.picture(comparison, options.output / f"{model.name}.png")
        if options.verbose:
            console.print(report.table(comparison))
            console.print(escape(report.proof(comparison)), style="dim")
            console.print()
    if options.plot:
        report.curves(comparisons, options.plot)
    if options.verbose:
        console.print(EXPLANATION, style="dim")
    console.print(f"Plots and logs: {escape(str(options.output))}", soft_wrap=True)
    failures = [failure for comparison in comparisons for failure in comparison.failures()]
    code = commands.print_failures(console, failures)
    console.print(f"After {options.steps} steps, stock / blockcell: loss, time of a step, ratio")
    width = max(len(model.title) for model in options.models)
    for comparison in comparisons:
        good = not comparison.failures()
        verdict = "[bold green]ok[/]    " if good else "[bold red]FAILED[/]"
        summary = escape(report.summary(comparison, width))
        console.print(f"{verdict} {summary}", highlight=False, soft_wrap=True)
    return code


if __name__ == "__main__":
    sys.exit(commands.call(run, arguments()))
