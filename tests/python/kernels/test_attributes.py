"""forget_bias and cell_clip, against the oracle."""

import numpy as np
import pytest

from blockcell.op_table import BLOCK_LSTM, CLIPPING, LSTM_CELL
from blockcell_tools.reference.inputs import inputs_of
from helpers import checks, grids, kernels

TINY, HUGE = 1e-9, 1e6  # In half, zero and infinity.


def outputs(op, dtype, on, **attributes):
    """What our kernel returns, compared with the oracle; cs_prev is large enough to be clipped."""
    inputs = inputs_of(op, 5, 19, 33, time=4, length=3, dtype=dtype, **on)
    inputs["cs_prev"] *= 4
    got = kernels.run(op, inputs, **on, **attributes)
    checks.assert_accurate(op, inputs, got, op, **on, **attributes)
    return got


@pytest.mark.parametrize("cell_clip", [0.3, 1.0, 3.0, 1e-4, 1e-8])
@pytest.mark.parametrize("op, dtype, on", grids.variants(CLIPPING))
def test_clipping(op, dtype, on, cell_clip):
    got = outputs(op, dtype, on, cell_clip=cell_clip)
    k = float(np.asarray(cell_clip, dtype))
    assert np.abs(got["cs"]).max() == k
    assert (np.abs(got["cs"]) == k).mean() > 0.01


@pytest.mark.parametrize("cell_clip", [0.0, -0.0, -1.0, -np.inf, np.inf, np.nan, 1e30])
@pytest.mark.parametrize("op, dtype, on", grids.variants(CLIPPING))
def test_no_clipping(op, dtype, on, cell_clip):
    got = outputs(op, dtype, on, cell_clip=cell_clip)
    assert np.abs(got["cs"]).max() > 3


@pytest.mark.parametrize("op, dtype, on", grids.variants(CLIPPING))
def test_cell_clip_takes_the_type_of_the_tensors(op, dtype, on):
    tiny, huge = (outputs(op, dtype, on, cell_clip=clip)["cs"] for clip in (TINY, HUGE))
    if dtype == np.float16:
        assert not tiny.any()
    else:
        assert np.abs(tiny).max() == np.float32(TINY)
    assert np.abs(huge).max() > 3


@pytest.mark.parametrize("forget_bias", [0.0, 1.0, -2.5, 5.0, 0.1, 1e6, -1e6])
@pytest.mark.parametrize("op, dtype, on", grids.variants([LSTM_CELL, BLOCK_LSTM]))
def test_forget_bias(op, dtype, on, forget_bias):
    got = outputs(op, dtype, on, forget_bias=forget_bias, cell_clip=0.0)
    steps = got["f"][:3] if op == BLOCK_LSTM else got["f"]
    if abs(forget_bias) == 1e6:
        np.testing.assert_array_equal(steps, np.full_like(steps, forget_bias > 0))


@pytest.mark.parametrize("op, dtype, on", grids.variants([LSTM_CELL, BLOCK_LSTM]))
def test_defaults_of_the_attributes(op, dtype, on):
    inputs = inputs_of(op, 5, 19, 33, dtype=dtype, **on)
    inputs["cs_prev"] *= 4
    got = kernels.run(op, inputs, **on)
    explicit = kernels.run(op, inputs, forget_bias=1.0, cell_clip=3.0, **on)
    for name in got:
        np.testing.assert_array_equal(got[name], explicit[name], name)
    assert np.abs(got["cs"]).max() == 3


@pytest.mark.parametrize("op, dtype, on", grids.variants(CLIPPING))
def test_nan_survives_clipping(op, dtype, on):
    inputs = inputs_of(op, 5, 19, 33, time=4, length=3, dtype=dtype, **on)
    inputs["cs_prev"][2, 7] = np.nan
    clean = inputs_of(op, 5, 19, 33, time=4, length=3, dtype=dtype, **on)
    clean = kernels.run(op, clean, cell_clip=0.5, **on)
    got = kernels.run(op, inputs, cell_clip=0.5, **on)
    cs = got["cs"][0] if op != LSTM_CELL else got["cs"]
    assert np.isnan(cs[2, 7]) and np.isnan(cs).sum() == 1
    others = np.arange(5) != 2
    for name in got:
        np.testing.assert_array_equal(
            got[name][..., others, :], clean[name][..., others, :], err_msg=name
        )
