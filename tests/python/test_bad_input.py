"""Malformed calls: each is refused with a message, the process lives and the next call works."""

import numpy as np
import pytest
import tensorflow as tf

import cases
import isolated
import kernels
import shape_rules
from cases import GRU, LSTM, SHAPES


def assert_works(op, attributes):
    inputs = shape_rules.good_inputs(op, attributes)
    want = cases.expected(op, inputs, **attributes)
    cases.assert_close(kernels.run(op, inputs, **attributes), want, 1e-6)


@pytest.mark.parametrize(
    "op, attributes, tensor, wrong",
    [pytest.param(*rest, id=name) for name, *rest in shape_rules.every_mutation()],
)
def test_wrong_shape(op, attributes, tensor, wrong):
    inputs = shape_rules.good_inputs(op, attributes)
    inputs[tensor] = np.ones(wrong, np.float32)
    message = shape_rules.complaint(op, attributes.get("use_peephole"), inputs)
    if message is None:
        # Without peepholes their weights may be vectors of any length.
        assert tensor in cases.PEEPHOLES and not attributes["use_peephole"]
        got = kernels.run(op, inputs, **attributes)
        cases.assert_close(got, cases.expected(op, inputs, **attributes), 1e-6)
        assert got[tensor + "_grad"].shape == wrong
    else:
        with pytest.raises(tf.errors.InvalidArgumentError) as error:
            kernels.run(op, inputs, **attributes)
        assert message in str(error.value)
    assert_works(op, attributes)


@pytest.mark.parametrize("tensor", list(SHAPES[LSTM]))
def test_wrong_shape_of_half(tensor):
    inputs = shape_rules.good_inputs(LSTM, {"use_peephole": True}, np.float16)
    inputs[tensor] = inputs[tensor][..., :-1]
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        kernels.run(LSTM, inputs, use_peephole=True)
    assert shape_rules.complaint(LSTM, True, inputs) in str(error.value)


EMPTY = [(0, 2, 4), (3, 0, 4), (3, 2, 0), (0, 0, 4), (0, 2, 0), (3, 0, 0), (0, 0, 0)]


@pytest.mark.parametrize("sizes", EMPTY, ids=lambda sizes: "x".join(map(str, sizes)))
@pytest.mark.parametrize(
    "op, attributes", [(GRU, {}), (LSTM, {"use_peephole": False}), (LSTM, {"use_peephole": True})]
)
def test_empty_but_consistent_shapes_succeed(op, attributes, sizes):
    # Filled memory, so that an output nobody wrote to would not look like zeros.
    kernels.run(op, cases.grad_inputs(op, 3, 2, 4, seed=5, **attributes), **attributes)
    inputs = cases.grad_inputs(op, *sizes, **attributes)
    got = kernels.run(op, inputs, **attributes)
    cases.assert_close(got, cases.expected(op, inputs, **attributes), 1e-6)


def test_d_x_without_cells_is_zero():
    for _ in range(20):  # The allocator reuses memory that held other values.
        kernels.run(GRU, cases.grad_inputs(GRU, 40, 50, 3))
        got = kernels.run(GRU, cases.grad_inputs(GRU, 40, 50, 0))["d_x"]
        np.testing.assert_array_equal(got, np.zeros([40, 50]))


def test_peephole_gradients_of_an_empty_batch_are_zero():
    for _ in range(20):
        kernels.run(LSTM, cases.grad_inputs(LSTM, 4, 2, 70, use_peephole=True), use_peephole=True)
        inputs = cases.grad_inputs(LSTM, 0, 2, 70, use_peephole=True)
        got = kernels.run(LSTM, inputs, use_peephole=True)
        for name in ("wci_grad", "wcf_grad", "wco_grad"):
            np.testing.assert_array_equal(got[name], np.zeros(70))


HUGE = [
    prefix + name
    for prefix in ("gru_", "lstm_")
    for name in ("one_huge_tensor", "huge_but_empty", "overflow")
]


@pytest.fixture(scope="module")
def huge():
    return isolated.run("huge", HUGE)


@pytest.mark.parametrize("name", HUGE)
def test_huge_sizes(huge, name):
    isolated.value(huge[name])
