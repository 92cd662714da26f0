"""Trains character language models with stock kernels and with blockcell's, side by side.

The training graphs were made by TensorFlow 1.15.5 and are left as they are; `README.md` in this
folder says what is shown. Exit code 0 means that the library's kernels ran and that the losses
agree, 1 that they did not, 130 that it was interrupted.
"""

import argparse
import contextlib
import pathlib
import sys

import models
import text
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)
from worker import Worker, WorkerError

TRACED = 8
"""Steps that are traced after the measured ones; the first of them is not counted."""
EXPLANATION = (
    "Each training is a process of its own; their steps alternate. Ratio: stock / blockcell. Share"
    " of the step: time within calls of the gradient op, which wait for each other, divided by the"
    " time from the start of the step's first op to the end of its last one; median of"
    f" {TRACED - 1} traced steps."
)


def arguments():
    """Parses the command line."""
    parser = argparse.ArgumentParser(
        description="Train language models with stock kernels and with blockcell's, and compare."
    )
    parser.add_argument("--library", type=pathlib.Path, required=True, help="libblockcell.so")
    parser.add_argument("--steps", type=int, default=200, help="steps a model (default: 200)")
    parser.add_argument(
        "--output",
        type=pathlib.Path,
        default=pathlib.Path("build/demo"),
        help="folder for plots and logs (default: build/demo)",
    )
    result = parser.parse_args()
    if not result.library.is_file():
        parser.error(f"there is no {result.library}; `make lib` builds it")
    if result.steps < 20:
        parser.error("--steps must be 20 or more")
    return result


@contextlib.contextmanager
def two_workers(model, library, logs):
    """Starts the stock worker and the library's for a model, and ends them in any case."""
    with contextlib.ExitStack() as stack:
        workers = []
        for name, path in (("stock", None), ("blockcell", library)):
            workers.append(Worker(name, model, path, str(logs / f"{model.name}-{name}.log")))
            stack.callback(workers[-1].stop)
        yield workers


def compare(console, model, windows, library, steps, logs):
    """Trains a model both ways.

    Args:
      console: Where to draw the progress bar.
      model: The `models.Model`.
      windows: What `text.windows` returned.
      library: Path of libblockcell.so.
      steps: How many steps to train.
      logs: Folder for what the processes write.

    Returns:
      A `report.Comparison`.
    """
    from report import Comparison, Training  # not for the workers, which import this file too

    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[state]}"),
        TimeRemainingColumn(),
        console=console,
        refresh_per_second=4,
    )
    with progress, two_workers(model, library, logs) as workers:
        task = progress.add_task(model.title, total=steps + TRACED, state="starting TensorFlow")
        trainings = [Training(worker.ready(), [], []) for worker in workers]
        progress.update(task, state="first step")
        for step in range(steps + TRACED):
            window = windows[step % len(windows)]
            traced = step >= steps
            # The one and the other go first in turn.
            for which in (0, 1) if step % 2 else (1, 0):
                result = workers[which].step(window, traced)
                kind = trainings[which].traced if traced else trainings[which].steps
                kind.append(result)
            loss = trainings[0].steps[-1].loss
            progress.update(task, advance=1, state=f"loss {loss:.3f}")
    for training in trainings:
        del training.traced[0]  # it pays for setting the tracing up
    return Comparison(model, *trainings)


def run(console, options):
    """Runs the demo and returns its exit code."""
    import report

    logs = options.output / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    corpus = text.corpus()
    windows = text.windows(corpus)
    console.print(
        f"Text: {len(corpus):,} bytes of the Python standard library;"
        f" a step reads {models.BATCH} x {models.TIME} of them"
    )
    failures, pictures = [], []
    for model in models.MODELS:
        library = str(options.library.resolve())
        comparison = compare(console, model, windows, library, options.steps, logs)
        console.print(report.table(comparison))
        console.print(escape(report.proof(comparison)), style="dim")
        console.print()
        failures += comparison.failures()
        pictures.append(options.output / f"{model.name}.png")
        report.picture(comparison, pictures[-1])
    console.print(EXPLANATION, style="dim")
    for picture in pictures:
        console.print(f"Plot: {escape(str(picture))}", soft_wrap=True)
    for failure in failures:
        console.print(f"[bold red]FAILED[/] {escape(failure)}", soft_wrap=True)
    if not failures:
        console.print("[bold green]Both models trained on blockcell's kernels to the same losses.")
    return 1 if failures else 0


def main():
    """Command line."""
    options = arguments()
    console = Console()
    try:
        return run(console, options)
    except KeyboardInterrupt:
        console.print("Interrupted; the workers are stopped.")
        return 130
    except (WorkerError, RuntimeError, OSError) as error:
        console.print(f"[bold red]FAILED[/] {escape(str(error))}", soft_wrap=True)
        return 1


if __name__ == "__main__":
    sys.exit(main())
