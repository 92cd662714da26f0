"""Our kernels against the oracle, over a grid of sizes."""

import numpy as np
import pytest

from blockcell import op_table
from blockcell.op_table import GRADIENTS, OPS, SEQUENCES
from blockcell_tools.reference.inputs import expected, inputs_of
from helpers import checks, grids, kernels, sampling

pytestmark = pytest.mark.once


def assert_accurate(op, inputs, dtype, on, **attributes):
    """Runs our kernel and compares."""
    got = kernels.run(op, inputs, **on, **attributes)
    checks.assert_accurate(op, inputs, got, op, **on, **attributes)


@pytest.mark.parametrize("op, dtype, on, at", grids.sampled(grids.every_size()))
def test_accuracy(op, dtype, on, at):
    assert_accurate(op, inputs_of(op, **at, dtype=dtype, **on), dtype, on)


@pytest.mark.parametrize("scale", [1e-4, 1e3])
@pytest.mark.parametrize("op, dtype, on", grids.variants(GRADIENTS))
def test_accuracy_at_other_magnitudes_of_gradients(op, dtype, on, scale):
    if dtype == np.float16:
        scale = {1e-4: 0.25, 1e3: 16.0}[scale]  # Within the range of half.
    inputs = inputs_of(op, 5, 19, 33, dtype=dtype, **on)
    for name in ("d_h", "cs_grad", "h_grad", "h_last_grad"):
        if name in inputs:
            inputs[name] = (inputs[name] * scale).astype(dtype)
    assert_accurate(op, inputs, dtype, on)


@pytest.mark.parametrize("scale", [1e-4, 30.0])
@pytest.mark.parametrize("op, dtype, on", grids.variants(sorted(set(OPS) - set(GRADIENTS))))
def test_accuracy_at_other_magnitudes_of_inputs(op, dtype, on, scale):
    """From where gates are near one half to where they are saturated."""
    inputs = inputs_of(op, 5, 19, 33, dtype=dtype, **on)
    for name in ("x", "h_prev", "cs_prev"):
        if name in inputs:
            inputs[name] = (inputs[name] * scale).astype(dtype)
    assert_accurate(op, inputs, dtype, on)


@pytest.mark.parametrize("batch, input_size, cell_size", [(2, 3, 7), (1, 9, 4)])
@pytest.mark.parametrize("op, dtype, on", grids.variants(SEQUENCES))
def test_long_sequences(op, dtype, on, batch, input_size, cell_size):
    length = None if op_table.OPS[op].length == "sequence_length" else 1999
    sizes = (batch, input_size, cell_size, 2000, length)
    inputs = inputs_of(op, *sizes, dtype=dtype, **on)
    for name in ("cs_grad", "h_grad"):
        if name in inputs:  # The sums over all steps have to be in the range of half.
            inputs[name] = (inputs[name] / 64).astype(dtype)
    assert_accurate(op, inputs, dtype, on)


@pytest.mark.parametrize("op, dtype, on", grids.variants(SEQUENCES))
def test_wide_sequences(op, dtype, on):
    inputs = inputs_of(op, 3, 97, 701, 3, None, dtype=dtype, **on)
    assert_accurate(op, inputs, dtype, on)


# Values that do not matter, and values that are not finite.


@pytest.mark.parametrize("op, dtype, on", grids.variants())
def test_unread_inputs_do_not_matter(op, dtype, on):
    inputs = inputs_of(op, 5, 19, 33, dtype=dtype, **on)
    want = kernels.run(op, inputs, **on)
    for name in op_table.unread(op, on):
        inputs[name] = np.full_like(inputs[name], np.nan)
    got = kernels.run(op, inputs, **on)
    for name in want:
        np.testing.assert_array_equal(got[name], want[name], err_msg=name)


def classes(array):
    """NaN, infinities with their sign, and everything finite as 0."""
    array = np.asarray(array, np.float64)
    return np.where(np.isfinite(array), 0.0, array)


SPOILT = sampling.sample(
    [
        (op, on, name, value)
        for op in OPS
        for on in op_table.switches(op)
        for name in OPS[op].inputs
        if name not in op_table.unread(op, on) + op_table.LENGTHS
        for value in (np.nan, np.inf, -np.inf)
    ],
    lambda case: [(case[0], *case[1].values(), case[2]), (case[0], str(case[3]))],
)


@pytest.mark.parametrize(
    "op, on, name, value",
    [
        pytest.param(op, on, name, value, id=f"{grids.name(op, on=on)}-{name}-{value}")
        for op, on, name, value in SPOILT
    ],
)
def test_nan_and_infinity_go_where_the_equations_send_them(op, on, name, value):
    length = 3 if op in SEQUENCES else None
    inputs = inputs_of(op, 5, 19, 33, length=length, **on)
    clean = kernels.run(op, inputs, **on)
    axes = OPS[op].inputs[name].shape
    row, places = 3, {"time": 1, "batch": 3}
    inputs[name][tuple(places.get(axis, 18) for axis in axes)] = value
    got = kernels.run(op, inputs, **on)
    with np.errstate(invalid="ignore", over="ignore"):
        want = expected(op, inputs, **on)
    if np.isnan(value) or op in GRADIENTS:
        assert not all(np.isfinite(outcome).all() for outcome in want.values()), "nothing to see"
    for output, tensor in OPS[op].outputs.items():
        np.testing.assert_array_equal(classes(got[output]), classes(want[output]), output)
        if "batch" in axes and "batch" in tensor.shape:
            others = np.arange(5) != row
            axis = tensor.shape.index("batch")
            np.testing.assert_array_equal(
                np.compress(others, got[output], axis),
                np.compress(others, clean[output], axis),
                output,
            )


@pytest.mark.parametrize("op, dtype, on", grids.variants())
def test_a_row_does_not_depend_on_the_others(op, dtype, on):
    """Bit for bit; those outputs that have rows. How many rows there are matters in one op."""
    inputs = inputs_of(op, 37, 19, 33, dtype=dtype, **on)
    together = kernels.run(op, inputs, **on)
    some_rows = [] if op == "GRUBlockCellGrad" else [[5], [0, 36, 7]]
    for rows in [list(reversed(range(37))), *some_rows]:
        some = {name: rows_of(OPS[op].inputs[name], rows, value) for name, value in inputs.items()}
        got = kernels.run(op, some, **on)
        for output, tensor in OPS[op].outputs.items():
            if "batch" in tensor.shape:
                want = rows_of(tensor, rows, together[output])
                np.testing.assert_array_equal(got[output], want, output)


def rows_of(tensor, rows, value):
    """Some rows of the batch; all of a value that has no rows."""
    return np.take(value, rows, tensor.shape.index("batch")) if "batch" in tensor.shape else value
