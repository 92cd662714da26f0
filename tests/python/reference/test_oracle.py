"""The oracle against itself by finite differences and loops, and against the stock kernels."""

import functools

import numpy as np
import pytest

from blockcell import op_table
from blockcell.op_table import (
    BLOCK_GRU,
    BLOCK_LSTM,
    BLOCK_LSTM_V2,
    GRADIENTS,
    LSTM_CELL,
    OPS,
)
from blockcell_tools.reference import oracle
from blockcell_tools.reference.inputs import (
    expected,
    forward,
    forward_inputs,
    inputs_of,
    scaled_error,
)
from helpers import checks, kernels
from helpers.numeric import numeric_gradients

SIZES = [(3, 2, 4), (1, 5, 1), (4, 1, 3)]

TIMES = [(3, None), (4, 2), (2, 0), (1, 1)]  # And lengths.
GRADIENT_VARIANTS = [
    pytest.param(op, on, time, length, id="-".join([op, f"{time}-{length}", *filter(on.get, on)]))
    for op in GRADIENTS
    for on in op_table.switches(op)
    for time, length in (TIMES if op in op_table.SEQUENCES else TIMES[:1])
]


def incoming(op, inputs):
    """What the gradient op has as gradients of the forward op's outputs, by their names."""
    return {output: inputs[name] for name, output in op_table.incoming(op).items()}


def whole_gradients(op, inputs, got):
    """Gradients of all inputs of the forward op, from what the gradient op returns.

    The ops for one step leave a product or two to the caller.
    """
    if op in op_table.SEQUENCES:
        return {name[: -len("_grad")]: value for name, value in got.items()}
    input_size = inputs["x"].shape[1]
    xh = np.concatenate([inputs["x"], inputs["h_prev"]], axis=1)
    if op == op_table.GRU_CELL_GRAD:
        xhr = np.concatenate([inputs["x"], inputs["r"] * inputs["h_prev"]], axis=1)
        return {
            "x": got["d_x"],
            "h_prev": got["d_h_prev"],
            "w_ru": xh.T @ got["d_r_bar_u_bar"],
            "w_c": xhr.T @ got["d_c_bar"],
            "b_ru": got["d_r_bar_u_bar"].sum(0),
            "b_c": got["d_c_bar"].sum(0),
        }
    through_w = got["dicfo"] @ inputs["w"].T
    return {
        "x": through_w[:, :input_size],
        "cs_prev": got["cs_prev_grad"],
        "h_prev": through_w[:, input_size:],
        "w": xh.T @ got["dicfo"],
        **{name: got[name + "_grad"] for name in op_table.PEEPHOLES},
        "b": got["dicfo"].sum(0),
    }


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("op, on, time, length", GRADIENT_VARIANTS)
def test_gradients_are_those_of_the_forward_op(op, on, sizes, time, length):
    inputs = inputs_of(op, *sizes, dtype=np.float64, time=time, length=length, **on)
    got = whole_gradients(op, inputs, expected(op, inputs, **on))
    given = {name: inputs[name] for name in OPS[OPS[op].forward].inputs}
    want = numeric_gradients(lambda **at: forward(op, at, **on), given, incoming(op, inputs))
    checks.assert_close(got, want, 1e-7)


def test_gradients_ignore_clipping():
    """The gradient op has no cell_clip: what it returns belongs to the identity in its place."""
    inputs = forward_inputs(BLOCK_LSTM, 3, 2, 4, time=1, dtype=np.float64)
    saved = oracle.block_lstm(**inputs, cell_clip=1e-3)
    assert (np.abs(saved["cs"]) == 1e-3).mean() > 0.9
    zeros = np.zeros_like(saved["h"])
    cs_grad = np.ones_like(saved["h"])
    got = oracle.block_lstm_grad(**inputs, **saved, cs_grad=cs_grad, h_grad=zeros)
    free = functools.partial(oracle.block_lstm, cell_clip=0.0)
    want = numeric_gradients(free, inputs, {"cs": cs_grad})
    checks.assert_close(got, {name + "_grad": value for name, value in want.items()}, 1e-7)


# Sequences are loops of cells.


@pytest.mark.parametrize("use_peephole", [False, True])
def test_block_lstm_is_a_loop_of_cells(use_peephole):
    inputs = forward_inputs(BLOCK_LSTM, 3, 2, 4, time=5, length=4)
    attributes = dict(use_peephole=use_peephole, forget_bias=0.5, cell_clip=0.75)
    got = oracle.block_lstm(**inputs, **attributes)
    at = {name: value for name, value in inputs.items() if name != "seq_len_max"}
    for t in range(4):
        step = oracle.lstm_block_cell(**dict(at, x=inputs["x"][t]), **attributes)
        checks.assert_close({name: got[name][t] for name in got}, step, 0)
        at.update({name + "_prev": step[name].astype(np.float32) for name in ("cs", "h")})
    assert (np.abs(got["cs"][:4]) == 0.75).any()
    assert not any(got[name][4:].any() for name in got)


@pytest.mark.parametrize("use_peephole", [False, True])
def test_block_lstm_v2_has_other_columns_and_no_forget_bias(use_peephole):
    inputs = forward_inputs(BLOCK_LSTM_V2, 3, 2, 4)
    got = oracle.block_lstm_v2(**inputs, use_peephole=use_peephole)
    order = np.r_[0:4, 8:12, 4:8, 12:16]
    inputs.update(w=inputs["w"][:, order], b=inputs["b"][order])
    want = oracle.block_lstm(**inputs, forget_bias=0.0, cell_clip=0.0, use_peephole=use_peephole)
    checks.assert_close(got, want, 0)


def test_block_gru_is_a_loop_of_cells():
    inputs = forward_inputs(BLOCK_GRU, 3, 2, 4, time=5, length=5)
    got = oracle.block_gru(**inputs, reset_after=False)
    weights = {name: inputs[name] for name in ("w_ru", "w_c", "b_ru", "b_c")}
    h_prev = inputs["h_prev"]
    for t in range(5):
        step = oracle.gru_block_cell(inputs["x"][t], h_prev, **weights)
        checks.assert_close({name: got[name][t] for name in step}, step, 1e-15)
        np.testing.assert_array_equal(got["hc"][t], step["r"] * h_prev)
        h_prev = step["h"].astype(np.float32)
    np.testing.assert_allclose(got["h_last"], step["h"], rtol=0, atol=1e-15)


@pytest.mark.parametrize("reset_after", [False, True])
def test_rows_of_block_gru_are_sequences_of_their_own(reset_after):
    inputs = forward_inputs(BLOCK_GRU, 6, 2, 4, time=5)
    lengths = inputs["sequence_length"] = np.array([5, 0, 1, 4, 2, 3])
    got = oracle.block_gru(**inputs, reset_after=reset_after)
    weights = {name: inputs[name] for name in ("w_ru", "w_c", "b_ru", "b_c", "b_hc")}
    for row, length in enumerate(lengths):
        x, h_prev = inputs["x"][:length, row : row + 1], inputs["h_prev"][row : row + 1]
        alone = oracle.block_gru([length], x, h_prev, **weights, reset_after=reset_after)
        np.testing.assert_allclose(got["h_last"][row], alone["h_last"][0], atol=1e-12)
        for name in ("r", "u", "c", "hc", "h"):
            np.testing.assert_allclose(got[name][:length, row], alone[name][:, 0], atol=1e-12)
            assert not got[name][length:, row].any()


def test_the_conventions_of_block_gru_agree_where_the_reset_gate_is_open():
    inputs = forward_inputs(BLOCK_GRU, 3, 2, 4, time=5)
    inputs["b_ru"][:4] = 1e3
    inputs["b_hc"][:] = 0
    before = oracle.block_gru(**inputs, reset_after=False)
    after = oracle.block_gru(**inputs, reset_after=True)
    for name in ("r", "u", "c", "h", "h_last"):
        np.testing.assert_allclose(before[name], after[name], atol=1e-12)
    shut = dict(inputs, b_ru=-inputs["b_ru"])
    assert np.abs(oracle.block_gru(**shut)["c"] - before["c"]).max() > 1e-2


# Clipping.


def test_clipping_bounds_the_cell_state():
    inputs = forward_inputs(LSTM_CELL, 6, 3, 5)
    free = oracle.lstm_block_cell(**inputs, cell_clip=0.0)["cs"]
    clipped = oracle.lstm_block_cell(**inputs, cell_clip=0.25)["cs"]
    assert np.abs(free).max() > 0.25
    np.testing.assert_array_equal(clipped, np.clip(free, -0.25, 0.25))
    for off in (-1.0, np.nan, 1e-60):
        np.testing.assert_array_equal(oracle.lstm_block_cell(**inputs, cell_clip=off)["cs"], free)


def test_clipping_in_half():
    inputs = forward_inputs(LSTM_CELL, 6, 3, 5, dtype=np.float16)
    free = oracle.lstm_block_cell(**inputs, cell_clip=0.0)["cs"]
    np.testing.assert_array_equal(oracle.lstm_block_cell(**inputs, cell_clip=1e6)["cs"], free)
    assert not oracle.lstm_block_cell(**inputs, cell_clip=1e-9)["cs"].any()


# The stock kernels.

STOCK_LIMIT = {np.float32: 4e-6, np.float16: 3e-2}


@pytest.mark.parametrize("time", [1, 4])
@pytest.mark.parametrize("sizes", [(2, 1, 3), (3, 2, 4), (5, 19, 33)])
@pytest.mark.parametrize(
    "op, dtype, on",
    [
        pytest.param(*variant, id="-".join([variant[0], np.dtype(variant[1]).name, *variant[2]]))
        for variant in op_table.variants(op_table.STOCK)
    ],
)
def test_stock_kernels_agree(op, dtype, on, sizes, time):
    inputs = inputs_of(op, *sizes, time=time, dtype=dtype, **on)
    attributes = dict(on)
    if op in op_table.CLIPPING:
        attributes["cell_clip"] = 0.5
    if op in (LSTM_CELL, BLOCK_LSTM):
        attributes["forget_bias"] = 0.75
    got = kernels.run(op, inputs, kernels.STOCK_KERNEL, **attributes)
    checks.assert_close(got, expected(op, inputs, **attributes), STOCK_LIMIT[dtype], op)


# How errors are measured.


def test_an_error_is_seen():
    want = np.array([1.0, -4.0])
    assert scaled_error(want + [0, 4e-6], want) == pytest.approx(1e-6)
    assert scaled_error(np.array([0.0, np.nan]), want) != 0
    with pytest.raises(AssertionError, match="scaled error"):
        checks.assert_close({"a": want * 1.1}, {"a": want}, 1e-2)
    with pytest.raises(AssertionError, match="scaled error"):
        checks.assert_close({"a": want * np.nan}, {"a": want}, 1e-2)
    with pytest.raises(ValueError, match="shape"):
        checks.assert_close({"a": want[:1]}, {"a": want}, 1e-2)


@pytest.mark.parametrize("op, dtype, on", op_table.variants())
def test_an_inaccurate_output_is_seen(op, dtype, on):
    inputs = inputs_of(op, 3, 2, 4, dtype=dtype, **on)
    want = expected(op, inputs, **on)
    most, factor = (8e-3, 1.05) if dtype is op_table.BFLOAT16 else (1e-3, 1.01)
    right = {name: value.astype(dtype) for name, value in want.items()}
    checks.assert_accurate(op, inputs, right, most=most, **on)
    for name in want:
        if want[name].any():
            wrong = dict(right, **{name: (want[name] * factor).astype(dtype)})
            with pytest.raises(AssertionError, match=f"{name}: scaled error"):
                checks.assert_accurate(op, inputs, wrong, most=most, **on)
    with pytest.raises(ValueError, match="another type"):
        checks.assert_accurate(op, inputs, want, most=most, **on)
