"""Our kernels against the stock ones, in one process."""

import numpy as np
import pytest

from blockcell.op_table import (
    CLIPPING,
    GRADIENTS,
    GRU_CELL_GRAD,
    LSTM_CELL_GRAD,
    OPS,
    SEQUENCES,
    STOCK,
)
from blockcell_tools.reference.inputs import inputs_of
from helpers import checks, grids, kernels

GRADIENT_OPS = [op for op in STOCK if op in GRADIENTS]


def fit_for_stock(op, at):
    """Stock kernels divide by zero, return garbage or refuse where a size is 0."""
    sizes = [at["input_size"], at["cell_size"]] + [at["batch"]] * (
        op not in (GRU_CELL_GRAD, LSTM_CELL_GRAD)
    )
    return all(sizes)


def written_by_stock(op, inputs, outputs):
    """The outputs but for the steps that the stock kernel leaves uninitialised."""
    if op not in SEQUENCES or op in GRADIENTS:
        return outputs
    length = int(inputs["seq_len_max"])
    return {
        name: value if name in ("cs", "h") else value[:length] for name, value in outputs.items()
    }


def both(op, inputs, **attributes):
    """What our kernel and the stock one return."""
    for kernel in (kernels.OURS, kernels.STOCK_KERNEL):
        yield written_by_stock(op, inputs, kernels.run(op, inputs, kernel, **attributes))


def slow_in_stock(dtype, at):
    """In half, the products of large sizes take TensorFlow 1.15 many seconds."""
    return dtype == np.float16 and at["batch"] * at["cell_size"] > 1e5


SIZES = [
    (op, dtype, on, at)
    for op, dtype, on, at in grids.every_size(STOCK)
    if fit_for_stock(op, at) and not slow_in_stock(dtype, at)
][::2]


@pytest.mark.parametrize("op, dtype, on, at", grids.sampled(SIZES))
def test_same_as_stock(op, dtype, on, at):
    inputs = inputs_of(op, **at, dtype=dtype, seed=2, **on)
    ours, stock = both(op, inputs, **on)
    limit = grids.STOCK_LIMIT[dtype]
    if dtype == np.float16 and at.get("time", 0) > 100:
        limit *= 3  # Stock rounds sums over time to half, step by step.
    checks.assert_close(ours, stock, limit)


@pytest.mark.parametrize("cell_clip", [0.0, -1.0, 0.3, 3.0, 1e-9, 1e6, np.inf, np.nan])
@pytest.mark.parametrize("op, dtype, on", grids.variants(CLIPPING))
def test_same_clipping_as_stock(op, dtype, on, cell_clip):
    inputs = inputs_of(op, 5, 19, 33, dtype=dtype, **on)
    inputs["cs_prev"] *= 4
    ours, stock = both(op, inputs, cell_clip=cell_clip, **on)
    checks.assert_close(ours, stock, grids.STOCK_LIMIT[dtype])


@pytest.mark.parametrize("op, dtype, on", grids.variants(STOCK))
def test_same_classes_of_numbers_as_stock(op, dtype, on):
    """Where one has a NaN or an infinity, so has the other."""
    inputs = inputs_of(op, 5, 19, 33, dtype=dtype, **on)
    for value, name in ((np.nan, "x"), (np.inf, "h_prev"), (-np.inf, "cs_prev")):
        if name not in OPS[op].inputs:
            continue
        changed = dict(inputs, **{name: inputs[name].copy()})
        changed[name][..., 2, 1] = value
        with np.errstate(invalid="ignore"):
            ours, stock = both(op, changed, **on)
        for output in ours:
            np.testing.assert_array_equal(np.isnan(ours[output]), np.isnan(stock[output]), output)
            np.testing.assert_array_equal(np.isinf(ours[output]), np.isinf(stock[output]), output)
