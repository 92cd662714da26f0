"""Trains Keras sequence classifiers before and after `blockcell.keras.enable()`, side by side.

Exit code 0 means that the kernels served, and that both sides learnt the same; 1 that they did not.
"""

import contextlib
import pathlib
import sys

from rich.markup import escape

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import data  # noqa: E402
from common import commands  # noqa: E402
from common.workers import Worker  # noqa: E402
from training import Trainer  # noqa: E402

LIMIT = 0.02
"""Largest relative difference of losses that passes: training amplifies rounding errors."""


def arguments():
    """Parses the command line."""
    parser = commands.parser_of(
        "Train Keras sequence classifiers before and after blockcell.keras.enable().",
        "build/keras_classifier",
        "results, plot and logs",
    )
    parser.add_argument(
        "--data",
        nargs="+",
        choices=["standard_library", "digits"],
        default=["standard_library"],
        help="what to classify; digits needs scikit-learn (default: standard_library)",
    )
    cells = ["LSTM", "GRU"]
    parser.add_argument("--cells", nargs="+", choices=cells, default=cells, help="(default: both)")
    parser.add_argument("--units", type=int, default=256, help="units of the layer (default: 256)")
    parser.add_argument("--batch", type=int, default=32, help="sequences a step (default: 32)")
    parser.add_argument("--time", type=int, default=50, help="characters of text (default: 50)")
    parser.add_argument("--pieces", type=int, default=4096, help="pieces of text (default: 4096)")
    parser.add_argument("--epochs", type=int, default=9, help="2 or more (default: 9)")
    parser.add_argument("--threads", type=int, default=2, help="(default: 2)")
    result = commands.parsed(parser)
    if result.epochs < 2:
        parser.error("--epochs must be 2 or more: the first is not timed")
    return result


def compare(console, dataset, cell, options):
    """Trains a classifier on both sides; returns its `results.Result` and what is wrong."""
    # Not at the top: the workers import this file, too.
    import results

    logs = options.output / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        workers = []
        for name, library in (("stock", None), ("ours", str(options.library.resolve()))):
            full = f"{dataset.name.replace(' ', '_')}-{cell}-{name}"
            size = (options.units, options.batch, options.threads)
            worker = Worker(full, logs / f"{full}.log", Trainer, dataset, cell, *size, library)
            workers.append(stack.enter_context(worker))
        epochs = ([], [])
        for number in range(options.epochs):
            order = (0, 1) if number % 2 == 0 else (1, 0)  # each goes first in its turn
            for which in order:
                epochs[which].append(workers[which].ask("epoch", number))
            stock, ours = (its[-1] for its in epochs)
            console.print(
                f"{dataset.name}, {cell}, epoch {number + 1}: Keras {stock.seconds:.1f} s, loss "
                f"{stock.loss:.4f}; blockcell {ours.seconds:.1f} s, loss {ours.loss:.4f}",
                highlight=False,
                soft_wrap=True,
            )
        sides = [
            results.Side(
                [epoch.loss for epoch in its],
                [epoch.seconds for epoch in its[1:]],
                worker.ask("accuracy"),
            )
            for worker, its in zip(workers, epochs)
        ]
        paths = [worker.ask("paths") for worker in workers]
        tensorflow, library = workers[1].ask("versions")
    result = results.Result(
        data=dataset.name,
        cell=cell,
        time=dataset.train.inputs.shape[1],
        batch=options.batch,
        units=options.units,
        tensorflow=tensorflow,
        library=library,
        threads=options.threads,
        stock=sides[0],
        ours=sides[1],
    )
    return result, list(wrong(result, paths))


def wrong(result, paths):
    """Yields what is wrong with a result, a line each."""
    if paths != [["keras"], ["blockcell"]]:
        yield f"{result.data}, {result.cell}: the layers ran on {paths}"
    if not result.difference <= LIMIT:  # NaN must fail, too
        yield f"{result.data}, {result.cell}: the losses differ by {result.difference:.1e}"


def run(console, options):
    """Trains all classifiers and returns the exit code."""
    import results

    found, failures = [], []
    for name in options.data:
        if name == "digits":
            dataset = data.digits()
        else:
            dataset = data.standard_library(options.time, options.pieces, options.pieces // 4)
        for cell in options.cells:
            result, wrongs = compare(console, dataset, cell, options)
            found.append(result)
            failures += wrongs
            file = options.output / f"tf-{result.tensorflow}.json"
            results.write(file, found)
            results.plot(file.with_suffix(".svg"), found)
            file.with_suffix(".md").write_text(results.markdown(found) + "\n", encoding="utf-8")
    console.print(results.table(found))
    console.print(results.NOTE, style="dim")
    console.print(f"Results, table and plot: {escape(str(file))}, .md, .svg", soft_wrap=True)
    return commands.print_failures(console, failures)


if __name__ == "__main__":
    sys.exit(commands.call(run, arguments()))
