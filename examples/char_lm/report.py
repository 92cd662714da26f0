"""What the demo shows: a table and a picture for each model."""

import json
import logging
import statistics
from typing import List, NamedTuple

import matplotlib
import models
import numpy as np
import rich.box
from rich.table import Table
from worker import Ready, Step

# Both before pyplot is imported: no display is needed, nor word of a font cache being built.
matplotlib.use("Agg")
logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import FuncFormatter  # noqa: E402

WARM_UP = 5
"""First steps that are left out of the step times: TensorFlow prepares the graph in them."""
LIMIT = 1e-4
"""Largest relative difference of losses that passes."""
COLOURS = {"stock": "#8d99ae", "blockcell": "#d1495b"}


class Training(NamedTuple):
    """One of the two trainings of a model."""

    ready: Ready
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
    def gradient_share(self):
        """Median share of a traced step that is spent in the gradient op."""
        return statistics.median(step.gradient / step.span for step in self.traced)

    @property
    def gradient_call(self):
        """Median seconds of a call of the gradient op: of the traced steps' means."""
        return statistics.median(step.gradient / step.calls for step in self.traced)


class Comparison(NamedTuple):
    """A model trained with stock kernels and with the library's."""

    model: models.Model
    stock: Training
    blockcell: Training

    @property
    def differences(self):
        """Relative difference of the losses at each step, float64 [steps]."""
        stock, ours = np.array(self.stock.losses), np.array(self.blockcell.losses)
        return np.abs(ours - stock) / np.abs(stock)

    def failures(self):
        """Returns what is wrong, one line each; nothing if all is as it should be."""
        gradient = self.model.gradient
        ours, stock = self.blockcell.ready, self.stock.ready
        result = []
        if gradient not in json.loads(ours.info)["taken_over"]:
            result.append(f"the library has not taken over {gradient}: {ours.info}")
        if ours.refusal != ours.labelled_refusal:
            result.append(f"{gradient} did not run on the library's kernel: {ours.refusal!r}")
        if stock.refusal == ours.refusal:
            result.append(f"{gradient} ran on the same kernel in both: {stock.refusal!r}")
        difference = self.differences.max()
        if not difference <= LIMIT:  # NaN must fail too
            result.append(
                f"{self.model.title}: the losses differ by {difference:.1e} (limit {LIMIT:.0e})"
            )
        return result


def table(comparison):
    """Returns the `rich.table.Table` of a comparison."""
    model, stock, ours = comparison
    info = json.loads(ours.ready.info)
    result = Table(
        title=f"{model.title}, {models.UNITS} units, {len(stock.steps)} steps"
        f"\nTensorFlow {stock.ready.tensorflow}, blockcell {info['version']} ({info['isa']})",
        title_style="bold",
        title_justify="left",
        box=rich.box.SIMPLE_HEAD,
    )
    result.add_column("")
    result.add_column("stock kernel", justify="right")
    result.add_column("blockcell", justify="right", style="bold")
    result.add_column("ratio", justify="right")

    def times(name, digits, a, b):
        values = (f"{seconds * 1e3:.{digits}f} ms" for seconds in (a, b))
        result.add_row(name, *values, f"{a / b:.2f} x")

    for name, index in (("loss at the start", 0), ("loss at the end", -1)):
        losses = (f"{training.losses[index]:.6f}" for training in (stock, ours))
        result.add_row(f"{name} (nats a byte)", *losses)
    largest = comparison.differences.max()
    result.add_row("largest relative difference of losses", "", f"{largest:.1e}")
    times("median step time", 1, stock.median, ours.median)
    times(
        f"{model.gradient}, a call ({stock.traced[0].calls} a step)",
        3,
        stock.gradient_call,
        ours.gradient_call,
    )
    shares = (f"{training.gradient_share:.1%}" for training in (stock, ours))
    result.add_row(f"{model.gradient}, share of the step", *shares)
    return result


def proof(comparison):
    """Returns what shows which kernel ran in which process."""
    info = json.loads(comparison.blockcell.ready.info)
    return (
        f"Taken over: {', '.join(info['taken_over']) or 'nothing'} (override: {info['override']})."
        f" To a malformed {comparison.model.gradient} the stock process says"
        f' "{comparison.stock.ready.refusal}", blockcell\'s "{comparison.blockcell.ready.refusal}".'
    )


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


def _draw_losses(axes, comparison):
    steps = range(1, len(comparison.stock.steps) + 1)
    axes.plot(steps, comparison.stock.losses, color=COLOURS["stock"], lw=4, label="stock kernel")
    axes.plot(
        steps, comparison.blockcell.losses, color=COLOURS["blockcell"], lw=1.2, label="blockcell"
    )
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
    axes.axhline(LIMIT, color="black", lw=1, ls="--")
    axes.annotate(
        "limit",
        (0, LIMIT),
        xycoords=("axes fraction", "data"),
        xytext=(4, -3),
        textcoords="offset points",
        va="top",
        fontsize=9,
    )
    axes.set_ylim(equal / 2, 5 * max(LIMIT, np.nanmax(shown)))
    axes.set_yticks([equal, 1e-7, 1e-6, 1e-5, LIMIT])
    axes.yaxis.set_major_formatter(
        FuncFormatter(lambda value, _: "equal" if value == equal else f"{value:.0e}")
    )
    axes.set_title("Relative difference of the losses", loc="left")
    axes.set_xlabel("training step")
    axes.grid(alpha=0.25)


def _draw_times(axes, comparison):
    everything = []
    for name, label, training in (
        ("stock", "stock kernel", comparison.stock),
        ("blockcell", "blockcell", comparison.blockcell),
    ):
        times = np.array([step.seconds for step in training.steps[WARM_UP:]]) * 1e3
        steps = np.arange(WARM_UP + 1, len(training.steps) + 1)
        median = training.median * 1e3
        axes.plot(steps, times, ".", ms=4, alpha=0.5, color=COLOURS[name])
        axes.axhline(median, color=COLOURS[name], lw=2.2, label=f"{label}: median {median:.1f} ms")
        everything.append(times)
    top = 1.4 * np.percentile(everything, 97)
    beyond = np.sum(np.array(everything) > top)
    axes.set_ylim(0, top)
    axes.set_title("Step time" + (f" (beyond the frame: {beyond})" if beyond else ""), loc="left")
    axes.set_xlabel("training step (the two trainings take turns)")
    axes.set_ylabel("step time (ms)")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, loc="lower right")
