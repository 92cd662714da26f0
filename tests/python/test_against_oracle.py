"""Our kernels against the oracle, over a grid of sizes."""

import numpy as np
import pytest

import cases
import kernels
from cases import GRU, LSTM

BATCH, INPUT, CELL = (0, 1, 2, 3, 20), (0, 1, 7, 16, 33), (0, 1, 15, 16, 17, 64, 130)
LARGE = [(64, 128, 256), (7, 300, 513), (200, 65, 129), (512, 1, 512)]
GRID = [(b, d, c) for b in BATCH for d in INPUT for c in CELL] + LARGE
LIMIT = {np.float32: 1e-6, np.float16: 1e-3}

# Op, element type, attributes.
VARIANTS = [
    pytest.param(GRU, np.float32, {}, id="gru-float"),
    pytest.param(LSTM, np.float32, {"use_peephole": False}, id="lstm-float"),
    pytest.param(LSTM, np.float32, {"use_peephole": True}, id="lstm-float-peephole"),
    pytest.param(LSTM, np.float16, {"use_peephole": False}, id="lstm-half"),
    pytest.param(LSTM, np.float16, {"use_peephole": True}, id="lstm-half-peephole"),
]


@pytest.mark.parametrize("sizes", GRID, ids=lambda sizes: "x".join(map(str, sizes)))
@pytest.mark.parametrize("op, dtype, attributes", VARIANTS)
def test_accuracy(op, dtype, attributes, sizes):
    inputs = cases.grad_inputs(op, *sizes, dtype=dtype, **attributes)
    got = kernels.run(op, inputs, **attributes)
    want = cases.expected(op, inputs, **attributes)
    assert all(value.dtype == dtype for value in got.values())
    limits = cases.accuracy_limits(op, inputs, want, LIMIT[dtype], **attributes)
    cases.assert_close(got, want, limits)


@pytest.mark.parametrize("scale", [1e-4, 1e3])
@pytest.mark.parametrize("op, dtype, attributes", VARIANTS)
def test_accuracy_at_other_magnitudes(op, dtype, attributes, scale):
    if dtype == np.float16:
        scale = {1e-4: 0.25, 1e3: 16.0}[scale]  # Within the range of half.
    inputs = cases.grad_inputs(op, 5, 19, 33, dtype=dtype, **attributes)
    for name in ("d_h", "cs_grad", "h_grad"):
        if name in inputs:
            inputs[name] = (inputs[name] * scale).astype(dtype)
    got = kernels.run(op, inputs, **attributes)
    cases.assert_close(got, cases.expected(op, inputs, **attributes), LIMIT[dtype])


@pytest.mark.parametrize("op, dtype, attributes", VARIANTS)
def test_unread_inputs_do_not_matter(op, dtype, attributes):
    inputs = cases.grad_inputs(op, 5, 19, 33, dtype=dtype, **attributes)
    want = kernels.run(op, inputs, **attributes)
    for name in cases.unread(op, attributes):
        inputs[name] = np.full_like(inputs[name], np.nan)
    got = kernels.run(op, inputs, **attributes)
    for name in want:
        np.testing.assert_array_equal(got[name], want[name], err_msg=name)


def classes(array):
    """NaN, infinities with their sign, and everything finite as 0."""
    array = np.asarray(array, np.float64)
    return np.where(np.isfinite(array), 0.0, array)


READ = [
    pytest.param(*variant.values, name, id=f"{variant.id}-{name}")
    for variant in VARIANTS
    for name in cases.SHAPES[variant.values[0]]
    if name not in cases.unread(variant.values[0], variant.values[2])
]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("op, dtype, attributes, name", READ)
def test_nan_and_infinity_go_where_the_equations_send_them(op, dtype, attributes, name, value):
    inputs = cases.grad_inputs(op, 5, 19, 33, dtype=dtype, **attributes)
    clean = kernels.run(op, inputs, **attributes)
    row, column = 3, 18
    inputs[name][(row, column) if inputs[name].ndim == 2 else column] = value
    got = kernels.run(op, inputs, **attributes)
    with np.errstate(invalid="ignore"):
        want = cases.expected(op, inputs, **attributes)
    assert not all(np.isfinite(outcome).all() for outcome in want.values()), "nothing to see"
    by_row = cases.SHAPES[op][name][0] == "batch"
    for output in want:
        np.testing.assert_array_equal(classes(got[output]), classes(want[output]), output)
        if by_row and got[output].ndim == 2:
            others = np.arange(len(got[output])) != row
            np.testing.assert_array_equal(got[output][others], clean[output][others], output)
