"""The oracle against finite differences of itself: the gradient ops against the forward cells."""

import numpy as np
import pytest

import cases
import oracle
from cases import GRU, LSTM

SIZES = [(3, 2, 4), (1, 5, 1), (4, 1, 3)]


def incoming(names, inputs, seed=7):
    random = np.random.RandomState(seed)
    shape = inputs["h_prev"].shape
    return {name: random.standard_normal(shape) for name in names}


@pytest.mark.parametrize("sizes", SIZES)
def test_gru_block_cell_grad(sizes):
    inputs = cases.forward_inputs(GRU, *sizes, dtype=np.float64)
    weights = incoming(["h"], inputs)
    outputs = oracle.gru_block_cell(**inputs)
    saved = {name: outputs[name] for name in "ruc"}
    got = oracle.gru_block_cell_grad(**inputs, **saved, d_h=weights["h"])
    want = oracle.numeric_gradients(oracle.gru_block_cell, inputs, weights)

    xh = np.concatenate([inputs["x"], inputs["h_prev"]], axis=1)
    xhr = np.concatenate([inputs["x"], outputs["r"] * inputs["h_prev"]], axis=1)
    analytic = {
        "x": got["d_x"],
        "h_prev": got["d_h_prev"],
        "w_ru": xh.T @ got["d_r_bar_u_bar"],
        "w_c": xhr.T @ got["d_c_bar"],
        "b_ru": got["d_r_bar_u_bar"].sum(0),
        "b_c": got["d_c_bar"].sum(0),
    }
    cases.assert_close(analytic, want, 1e-8)


@pytest.mark.parametrize("use_peephole", [False, True])
@pytest.mark.parametrize("sizes", SIZES)
def test_lstm_block_cell_grad(sizes, use_peephole):
    inputs = cases.forward_inputs(LSTM, *sizes, dtype=np.float64)
    weights = incoming(["cs", "h"], inputs)
    outputs = cases.forward(LSTM, inputs, use_peephole)
    saved = {name: outputs[name] for name in ("i", "cs", "f", "o", "ci", "co")}
    got = oracle.lstm_block_cell_grad(
        **inputs, **saved, cs_grad=weights["cs"], h_grad=weights["h"], use_peephole=use_peephole
    )
    want = oracle.numeric_gradients(
        lambda **at: cases.forward(LSTM, at, use_peephole), inputs, weights
    )

    through_w = got["dicfo"] @ inputs["w"].T
    xh = np.concatenate([inputs["x"], inputs["h_prev"]], axis=1)
    analytic = {
        "x": through_w[:, : sizes[1]],
        "cs_prev": got["cs_prev_grad"],
        "h_prev": through_w[:, sizes[1] :],
        "w": xh.T @ got["dicfo"],
        "wci": got["wci_grad"],
        "wcf": got["wcf_grad"],
        "wco": got["wco_grad"],
        "b": got["dicfo"].sum(0),
    }
    cases.assert_close(analytic, want, 1e-8)


def test_clipping_bounds_the_cell_state():
    inputs = cases.forward_inputs(LSTM, 6, 3, 5)
    free = oracle.lstm_block_cell(**inputs, cell_clip=0.0)["cs"]
    clipped = oracle.lstm_block_cell(**inputs, cell_clip=0.25)["cs"]
    assert np.abs(free).max() > 0.25
    np.testing.assert_array_equal(clipped, np.clip(free, -0.25, 0.25))


def test_an_error_is_seen():
    want = np.array([1.0, -4.0])
    assert cases.scaled_error(want + [0, 4e-6], want) == pytest.approx(1e-6)
    assert cases.scaled_error(np.array([0.0, np.nan]), want) != 0
    with pytest.raises(AssertionError, match="scaled error"):
        cases.assert_close({"a": want * 1.1}, {"a": want}, 1e-2)
    with pytest.raises(AssertionError, match="scaled error"):
        cases.assert_close({"a": want * np.nan}, {"a": want}, 1e-2)
    with pytest.raises(AssertionError, match="shape"):
        cases.assert_close({"a": want[:1]}, {"a": want}, 1e-2)
