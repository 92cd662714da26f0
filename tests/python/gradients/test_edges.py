"""First order gradients of half, of empty tensors, of short sequences and around NaN."""

import numpy as np
import pytest
import tensorflow as tf

from blockcell import op_table
from blockcell.op_table import BLOCK_GRU, BLOCK_LSTM, BLOCK_LSTM_V2, GRU_CELL, LSTM_CELL
from blockcell_tools.reference.inputs import forward_inputs
from helpers import checks, gradient_cases, kernels, ways
from helpers.gradient_cases import GATES, OUTPUTS, STATES, TIME, WITH_SWITCH, inputs_for

SEQUENCES = [variant for variant in WITH_SWITCH if variant[0] in op_table.SEQUENCES]
WAY = "graph" if ways.TF1 else "tape"  # What does not build a graph is fastest.


@pytest.mark.parametrize("dtype", op_table.OF_16_BITS)
@pytest.mark.parametrize("op, attributes", gradient_cases.params(WITH_SWITCH[1:]))
def test_16_bits(op, attributes, dtype):
    if dtype not in op_table.OPS[op].dtypes:
        pytest.skip("there is no kernel")
    inputs = inputs_for(op, dtype=dtype)
    limit = 3e-2 if dtype == np.float16 else 8e-2
    for names in (STATES[op], GATES[op]):
        # The forward pass may be the stock kernel's, which is off by up to 2e-2 in half.
        gradient_cases.check(WAY, op, attributes, names, inputs=inputs, limit=limit)


def test_half_is_accumulated_in_float():
    """A sum of 1 and 2047 terms of a quarter of its last bit, which half would all lose."""
    rows = 2048
    inputs = forward_inputs(LSTM_CELL, rows, 1, 1, dtype=np.float16)
    for name in inputs:
        inputs[name] = np.zeros_like(inputs[name])
    factors = np.full([rows, 1], 2.0**-12, np.float16)
    factors[0] = 1
    with ways.our_graph() as graph:
        tensors = {name: tf.constant(value) for name, value in inputs.items()}
        gate = kernels.call(LSTM_CELL, tensors)["ci"]
        b_grad = tf.gradients(gate, tensors["b"], tf.constant(factors))[0]
    with tf.compat.v1.Session(graph=graph) as session:
        got = session.run(b_grad)[1]
    assert got == np.float16(1 + 2047 * 2.0**-12)


# Empty tensors. On our kernels: the stock ones refuse them, leave outputs undefined, or crash.


@pytest.mark.parametrize("size", ["batch", "input_size", "cell_size"])
@pytest.mark.parametrize("op, attributes", gradient_cases.params(WITH_SWITCH))
def test_empty_tensors(op, attributes, size):
    inputs = inputs_for(op, **{size: 0})
    for names in (STATES[op], OUTPUTS[op]):
        gradient_cases.check("graph", op, attributes, names, inputs=inputs)


@pytest.mark.parametrize("op, attributes", gradient_cases.params(SEQUENCES))
def test_no_steps_at_all(op, attributes):
    inputs = inputs_for(op, time=0)
    for names in (STATES[op], OUTPUTS[op]):
        loss = ways.loss_of(ways.real(op, attributes), names)
        got = ways.first_order("graph", loss, inputs)
        want = {name: np.zeros_like(value) for name, value in ways.floating(inputs).items()}
        if op == BLOCK_GRU:  # h_last is h_prev.
            factor = ways.weights(names)["h_last"]
            want["h_prev"] = factor * (2 * inputs["h_prev"] + factor)
        checks.assert_close(got, want, 1e-6)


# Steps that do not take part.


@pytest.mark.parametrize("length", [0, 2])
@pytest.mark.parametrize("op, attributes", gradient_cases.params(SEQUENCES))
def test_lengths(op, attributes, length):
    inputs = inputs_for(op, time=2, length=length)
    for names in (STATES[op], OUTPUTS[op]):
        gradient_cases.check(WAY, op, attributes, names, inputs=inputs)


@pytest.mark.parametrize("op, attributes", gradient_cases.params(SEQUENCES))
def test_steps_that_are_not_computed_do_not_count(op, attributes):
    """NaN in x and in what arrives there reaches no gradient."""
    inputs = inputs_for(op)
    lengths = inputs[op_table.OPS[op].length]
    unused = np.arange(TIME[1])[:, np.newaxis] >= np.broadcast_to(lengths, [3])
    bad = dict(inputs, x=np.where(unused[:, :, np.newaxis], np.float32("nan"), inputs["x"]))
    noise = np.where(unused[:, :, np.newaxis], np.float32("nan"), np.float32(1.0))

    def loss(names, noise):
        def of_outputs(tensors):
            outputs = kernels.call(op, tensors, **attributes)
            sequences = [outputs[name] * noise for name in names if name != "h_last"]
            return tf.reduce_sum(tf.add_n(sequences))

        return of_outputs

    for names in (STATES[op], OUTPUTS[op]):
        got = ways.first_order(WAY, loss(names, noise), bad)
        silent = np.where(unused[:, :, np.newaxis], np.float32(0.0), noise)
        checks.assert_close(got, ways.first_order(WAY, loss(names, silent), inputs), 1e-6)


# Other.


def test_peephole_vectors_of_another_length_without_peepholes():
    inputs = inputs_for(LSTM_CELL)
    inputs.update(wci=np.ones(1, "f"), wcf=np.ones(0, "f"), wco=np.ones(9, "f"))
    for names in (("cs", "h"), ("i", "h")):
        loss = ways.loss_of(ways.real(LSTM_CELL, {"use_peephole": False}), names)
        got = ways.first_order("graph", loss, inputs)
        for name in op_table.PEEPHOLES:
            np.testing.assert_array_equal(got[name], np.zeros_like(inputs[name]))


@pytest.mark.parametrize("op", [GRU_CELL, BLOCK_LSTM])
def test_gradient_in_slices(op):
    """tf.gather hands its gradient over as IndexedSlices."""
    inputs = inputs_for(op)
    for name in (STATES[op][-1], GATES[op][0]):

        def gathered(call, name=name):
            return lambda tensors: tf.reduce_sum(tf.square(tf.gather(call(tensors)[name], [0, 2])))

        got = ways.first_order("graph", gathered(ways.real(op, {})), inputs)
        want = ways.true_gradients(gathered(ways.plain(op, {})), inputs)
        checks.assert_close(got, want, 1e-5)


def test_one_tensor_for_two_inputs():
    """Each input gets a gradient of its own, to be added up, at both orders."""
    inputs = inputs_for(BLOCK_LSTM_V2, time=TIME[2])
    peepholes = ("wci", "wcf", "wco")
    inputs = {name: value for name, value in inputs.items() if name not in peepholes[1:]}

    def shared(call):
        return lambda at: call(dict(at, **dict.fromkeys(peepholes, at["wci"])))

    names, attributes = STATES[BLOCK_LSTM_V2], {"use_peephole": True}
    for order in (1, 2):
        loss = ways.loss_of(shared(ways.plain(BLOCK_LSTM_V2, attributes)), names)
        want = ways.true_gradients(loss, inputs, order)
        take = ways.first_order if order == 1 else ways.second_order
        loss = ways.loss_of(shared(ways.real(BLOCK_LSTM_V2, attributes)), names)
        checks.assert_close(take(WAY, loss, inputs), want, 1e-5)
