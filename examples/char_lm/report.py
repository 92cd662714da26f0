"""What the demo shows: a line, a table and a picture for each model."""

import json
import logging
import statistics
from typing import List, NamedTuple, Optional

import matplotlib
import models
import numpy as np
import rich.box
from common import probes
from common.sessions import Ready
from rich.table import Table
from training import Slopes, Step

# Both before pyplot is imported: no display is needed, nor word of a font cache being built.
matplotlib.use("Agg")
logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import FuncFormatter  # noqa: E402

WARM_UP = 5
"""First steps that are left out of the step times: TensorFlow prepares the graph in them."""
LIMIT = 1e-4
"""Largest relative difference of losses that passes."""
LAST_LIMIT = 1e-2
"""The same of the last loss alone, where products are less precise."""
SLOPE_LIMIT = 1e-2
"""Largest relative difference of a slope by gradient and by finite differences that passes."""
COLOURS = {"stock": "#8d99ae", "blockcell": "#d1495b", "tensorflow": "#edae49"}


class Training(NamedTuple):
    """One of the trainings of a model."""

    setting: models.Setting
    ready: Ready
    slopes: Optional[Slopes]
    steps: List[Step]
    traced: List[Step]

    @property
    def losses(self):
        """Loss of each step, nats a byte."""
        return [step.loss for step in self.steps]

    @property
    def median(self):
        """Median step time in seconds, without the warm-up."""
        return statistics.median(step.seconds for step in self.steps[WARM_UP:])

    @property
    def share(self):
        """Median share of a traced step that is spent in the two ops."""
        return statistics.median(
            sum(seconds for _, seconds in step.ops) / step.span for step in self.traced
        )

    def time_in(self, which):
        """Median seconds of a traced step within op `which`."""
        return statistics.median(step.ops[which][1] for step in self.traced)

    def calls(self, which):
        """Calls of op `which` in a step."""
        return self.traced[0].ops[which][0]


class Comparison(NamedTuple):
    """A model trained with stock kernels, with the library's, and maybe in a third way."""

    model: models.Model
    stock: Training
    blockcell: Training
    contrast: Optional[Training] = None
    refusal: Optional[str] = None
    """What TensorFlow alone says to the graph, if it has no kernels for it."""
    precision: str = models.HIGHEST
    """How precise blockcell's products are."""

    @property
    def trainings(self):
        """All of them."""
        return [self.stock, self.blockcell] + ([self.contrast] if self.contrast else [])

    @property
    def differences(self):
        """Relative difference of the losses at each step, float64 [steps]."""
        stock, ours = np.array(self.stock.losses), np.array(self.blockcell.losses)
        return np.abs(ours - stock) / np.abs(stock)

    @property
    def limit(self):
        """The largest relative difference of losses that passes."""
        return LIMIT if self.precision == models.HIGHEST else LAST_LIMIT

    def failures(self):
        """Returns what is wrong, one line each; nothing if all is as it should be."""
        result = [*self._wrong_kernels(), *self._wrong_slopes()]
        if self.model.refused and self.refusal is None:
            result.append(f"{self.model.title}: TensorFlow alone runs the graph, too")
        for training in self.trainings:
            for which, op in enumerate(training.setting.ops):
                if not training.calls(which):
                    result.append(f"{op} was not called by {training.setting.title}")
        exact = self.precision == models.HIGHEST
        difference = self.differences.max() if exact else self.differences[-1]
        if not difference <= self.limit:  # NaN must fail too
            which = "losses differ" if exact else "last losses differ"
            result.append(
                f"{self.model.title}: the {which} by {difference:.1e} (limit {self.limit:.0e})"
            )
        return result

    def _wrong_kernels(self):
        return probes.wrong_kernels(
            self.stock.ready,
            self.blockcell.ready,
            self.stock.setting.ops,
            self.blockcell.setting.ops,
        )

    def _wrong_slopes(self):
        for training in (self.stock, self.blockcell):
            slopes = training.slopes
            if slopes and not abs(slopes.ratio - 1) <= SLOPE_LIMIT:
                yield (
                    f"{self.model.title}, {training.setting.title}: the gradient says that the"
                    f" loss has the slope {slopes.computed:.4f}, but it is {slopes.measured:.4f}"
                )


def summary(comparison, width):
    """Returns a comparison in one line: last losses, median step times, and their ratio.

    Args:
      comparison: The `Comparison`.
      width: Columns for the model's title.
    """
    model, stock, ours, contrast, refusal, _ = comparison
    line = (
        f"{model.title:{width}}  {stock.losses[-1]:.4f} / {ours.losses[-1]:.4f}"
        f"  {stock.median * 1e3:.1f} / {ours.median * 1e3:.1f} ms"
        f"  {stock.median / ours.median:.2f} x"
    )
    if contrast:
        line += f"  ({contrast.setting.title}: {contrast.losses[-1]:.4f})"
    if refusal:
        line += f"\n         the same graph in TensorFlow alone: {refusal}"
    return line


def table(comparison):
    """Returns the `rich.table.Table` of a comparison."""
    model, stock, ours, contrast, *_ = comparison
    info = json.loads(ours.ready.info)
    result = Table(
        title=f"{model.title}, {models.UNITS} units, {len(stock.steps)} steps"
        f"\nTensorFlow {stock.ready.tensorflow}, blockcell {info['version']} ({info['isa']},"
        f" {info['float32_matmul_runs']})",
        title_style="bold",
        title_justify="left",
        box=rich.box.SIMPLE_HEAD,
    )
    result.add_column("")
    result.add_column(_narrow(stock), justify="right")
    result.add_column(_narrow(ours), justify="right", style="bold")
    result.add_column("ratio", justify="right")
    if contrast:
        result.add_column(_narrow(contrast), justify="right", style="dim")

    def row(name, values, ratio=None):
        cells = list(values)
        cells.insert(2, "" if ratio is None else f"{ratio:.2f} x")
        result.add_row(name, *cells)

    trainings = comparison.trainings
    for name, index in (("loss at the start", 0), ("loss at the end", -1)):
        row(name, [f"{it.losses[index]:.6f}" for it in trainings])
    row("largest relative difference", ["", f"{comparison.differences.max():.1e}"])
    if all(it.slopes for it in trainings):
        row("slope, measured / gradient", [f"{it.slopes.ratio:.4f}" for it in trainings])
    medians = [_milliseconds(it.median) for it in trainings]
    row("median step time", medians, stock.median / ours.median)
    for which in (0, 1):
        times = [_milliseconds(it.time_in(which)) for it in trainings]
        # Ops that do not do the same work cannot be compared, nor one that was not called.
        comparable = stock.setting.ops == ours.setting.ops and ours.calls(which)
        ratio = stock.time_in(which) / ours.time_in(which) if comparable else None
        row(_name_of_op(comparison, which), times, ratio)
    row("both, share of the step", [f"{it.share:.1%}" for it in trainings])
    return result


def _narrow(training):
    """A title in as many lines as it has words, to leave room for the others."""
    return training.setting.title.replace(" ", "\n")


def _milliseconds(seconds):
    return f"{seconds * 1e3:.1f} ms"


def _name_of_op(comparison, which):
    """What the time within the trainings' ops is called: each op once, with its calls."""
    names = {}
    for training in comparison.trainings:
        names[training.setting.ops[which]] = training.calls(which)
    return "\n".join(f"{op}, {calls} a step" for op, calls in names.items())


def proof(comparison):
    """Returns what shows which kernel ran in which process."""
    model, stock, ours, *_ = comparison
    only = "has no other kernel for CPUs" if model.refused else "is the library's own"
    info = json.loads(ours.ready.info)
    words = [
        f"{op} is taken over ({info['override']})." if op in info["taken_over"] else f"{op} {only}."
        for op in ours.setting.ops
        if op in info["ops"]
    ]
    op = stock.setting.ops[1]
    if op not in stock.ready.refusals:  # A plain cell has no op of its own.
        return " ".join(words)
    words.append(f'To a malformed {op} the stock process says "{stock.ready.refusals[op]}",')
    words.append(f'blockcell\'s "{ours.ready.refusals[op]}".')
    return " ".join(words)


def picture(comparison, path):
    """Draws the loss curves, their difference and the step times of a comparison into a PNG."""
    with plt.rc_context({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}):
        figure = plt.figure(figsize=(12, 5.2), dpi=130)
        grid = figure.add_gridspec(2, 2, height_ratios=(2.4, 1), width_ratios=(1.15, 1))
        curves = figure.add_subplot(grid[0, 0])
        _draw_losses(curves, comparison)
        _draw_differences(figure.add_subplot(grid[1, 0], sharex=curves), comparison)
        _draw_times(figure.add_subplot(grid[:, 1]), comparison)
        version = comparison.stock.ready.tensorflow
        figure.suptitle(
            f"Character language model, {comparison.model.title}, {models.UNITS} units,"
            f" TensorFlow {version}",
            fontweight="bold",
        )
        figure.tight_layout(rect=(0, 0, 1, 0.98))
        figure.savefig(str(path))
        plt.close(figure)


def curves(comparisons, path):
    """Draws the losses of several models, a panel each, into one file."""
    columns = min(len(comparisons), 4)
    rows = -(-len(comparisons) // columns)
    style = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    # The same input makes the same file.
    with plt.rc_context({**style, "svg.hashsalt": "blockcell"}):
        figure, panels = plt.subplots(
            rows, columns, figsize=(3 * columns, 2.5 * rows), sharex=True, squeeze=False
        )
        for axes in panels.flat[len(comparisons) :]:
            axes.axis("off")
        for axes, comparison in zip(panels.flat, comparisons):
            for training in (comparison.stock, comparison.blockcell):
                is_stock = training is comparison.stock
                label = training.setting.title if is_stock else f"blockcell, {comparison.precision}"
                colour, width = COLOURS[training.setting.name], 4 if is_stock else 1.2
                steps = range(1, len(training.losses) + 1)
                axes.plot(steps, training.losses, color=colour, lw=width, label=label)
            last = f"last losses differ by {comparison.differences[-1]:.1e}"
            axes.set_title(f"{comparison.model.title}\n{last}", loc="left", fontsize=8)
            axes.grid(alpha=0.25)
        panels[0, 0].set_ylabel("loss (nats a byte)")
        panels[0, 0].legend(frameon=False)
        figure.supxlabel("training step", fontsize=9)
        figure.tight_layout()
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(str(path), metadata={"Date": None} if path.suffix == ".svg" else None)
        plt.close(figure)


def _draw_losses(axes, comparison):
    steps = range(1, len(comparison.stock.steps) + 1)
    for training in comparison.trainings:
        name, title = training.setting.name, training.setting.title
        width = 4 if name == "stock" else 1.2  # the next one lies on top of it
        axes.plot(steps, training.losses, color=COLOURS[name], lw=width, label=title)
    axes.set_title("Training loss", loc="left")
    axes.set_ylabel("loss (nats a byte)")
    axes.tick_params(labelbottom=False)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)


def _draw_differences(axes, comparison):
    steps = np.arange(1, len(comparison.differences) + 1)
    equal = 1e-8  # below the spacing of float32 numbers; stands for no difference
    shown = np.maximum(comparison.differences, equal)
    axes.semilogy(steps, shown, ".", ms=3, color="#30475e")
    limit = comparison.limit
    axes.axhline(limit, color="black", lw=1, ls="--")
    axes.annotate(
        "limit",
        (0, limit),
        xycoords=("axes fraction", "data"),
        xytext=(4, -3),
        textcoords="offset points",
        va="top",
        fontsize=9,
    )
    axes.set_ylim(equal / 2, 5 * max(limit, np.nanmax(shown)))
    axes.set_yticks([equal, 1e-7, 1e-6, 1e-5, LIMIT, *([limit] if limit > LIMIT else [])])
    axes.yaxis.set_major_formatter(
        FuncFormatter(lambda value, _: "equal" if value == equal else f"{value:.0e}")
    )
    axes.set_title("Relative difference of the losses", loc="left")
    axes.set_xlabel("training step")
    axes.grid(alpha=0.25)


def _draw_times(axes, comparison):
    everything = []
    for training in comparison.trainings:
        colour = COLOURS[training.setting.name]
        times = np.array([step.seconds for step in training.steps[WARM_UP:]]) * 1e3
        steps = np.arange(WARM_UP + 1, len(training.steps) + 1)
        median = training.median * 1e3
        label = f"{training.setting.title}: median {median:.1f} ms"
        axes.plot(steps, times, ".", ms=4, alpha=0.5, color=colour)
        axes.axhline(median, color=colour, lw=2.2, label=label)
        everything.append(times)
    top = 1.4 * np.percentile(everything, 97)
    beyond = np.sum(np.array(everything) > top)
    axes.set_ylim(0, top)
    axes.set_title("Step time" + (f" (beyond the frame: {beyond})" if beyond else ""), loc="left")
    axes.set_xlabel("training step (the trainings take turns)")
    axes.set_ylabel("step time (ms)")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, loc="lower right")
