"""Trains the demo's models on the library's kernels for a long time, and watches the processes.

Each model has a process of its own; their steps alternate. Exit code 0 means that every loss was
finite, and that the memory of no process grew after its first tenth, 1 that it was not so. How
steady steps are is printed: other programs on the machine make them slower, too.
"""

import contextlib
import math
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import models  # noqa: E402
import text  # noqa: E402
from common import commands  # noqa: E402
from common.workers import Worker  # noqa: E402
from training import Trainer  # noqa: E402

GROWTH = 0.02
"""What the memory may grow by, as a share: the allocator and Python keep some."""
HEADS = (
    *("model", "steps", "loss: first", "last", "MiB: first tenth", "last tenth"),
    *("ms a step: first quarter", "last quarter", "ratio"),
)


class Watched:
    """A model that trains, and what was seen of it."""

    def __init__(self, model, worker):
        """Has seen nothing yet."""
        self.model, self.worker = model, worker
        self.steps, self.memory = [], []

    def step(self, batch):
        """Trains a step, and looks at the process."""
        self.steps.append(self.worker.ask("step", batch))
        self.memory.append(self.worker.resident_bytes())

    def cells(self):
        """What the table shows."""
        first, last = self._quarters([step.seconds for step in self.steps])
        return [
            self.model.title,
            f"{len(self.steps):,}",
            f"{self.steps[0].loss:.3f}",
            f"{self.steps[-1].loss:.3f}",
            *(f"{size / 2**20:.0f}" for size in self._memory()),
            f"{1e3 * first:.1f}",
            f"{1e3 * last:.1f}",
            f"{last / first:.2f}",
        ]

    def failures(self):
        """What must not be, a line each."""
        if not all(math.isfinite(step.loss) for step in self.steps):
            yield f"{self.model.title}: a loss is not finite"
        before, after = self._memory()
        if after > before * (1 + GROWTH):
            yield f"{self.model.title}: memory has grown from {before:,} to {after:,} bytes"

    def _memory(self):
        """Resident bytes after the first tenth of the steps, and the most in the last one."""
        tenth = max(1, len(self.memory) // 10)
        return max(self.memory[: tenth + 1]), max(self.memory[-tenth:])

    @staticmethod
    def _quarters(seconds):
        """Medians of the first quarter without the first step, and of the last quarter."""
        quarter = max(2, len(seconds) // 4)
        return statistics.median(seconds[1:quarter]), statistics.median(seconds[-quarter:])


def train(workers, minutes):
    """Trains all models in turns for this long."""
    corpus = text.corpus()
    windows, lines = text.windows(corpus), text.lines(corpus)
    end = time.monotonic() + 60 * minutes
    step = 0
    while time.monotonic() < end or step < 20:
        for one in workers:
            batches = lines if one.model.lines else windows
            one.step(batches[step % len(batches)])
        step += 1


def run(console, options):
    """Trains, prints what was seen and returns the exit code."""
    logs = options.output / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    library = str(options.library.resolve())
    with contextlib.ExitStack() as stack:
        workers = []
        for model in options.models:
            log = logs / f"soak-{model.name}.log"
            worker = Worker(model.name, log, Trainer, model, model.blockcell, library)
            workers.append(Watched(model, stack.enter_context(worker)))
        train(workers, options.minutes)
    print(f"{options.minutes:g} minutes of training:\n")
    print("| " + " | ".join(HEADS) + " |\n|---" + "|--:" * (len(HEADS) - 1) + "|")
    for one in workers:
        print("| " + " | ".join(one.cells()) + " |")
    return commands.print_failures(console, [line for one in workers for line in one.failures()])


def arguments():
    """Parses the command line."""
    parser = commands.parser_of(
        "Train the demo's models for a long time, and watch the processes.", "build/demo", "logs"
    )
    parser.add_argument("--minutes", type=float, default=20.0, help="how long (default: 20)")
    names = {model.name: model for model in models.MODELS}
    parser.add_argument(
        "--models", nargs="+", choices=names, default=list(names), help="which ones (default: all)"
    )
    result = commands.parsed(parser)
    result.models = [names[name] for name in result.models]
    return result


if __name__ == "__main__":
    sys.exit(commands.call(run, arguments()))
