"""Gradients inside loops, by persistent tapes, as Jacobians, in forward mode, and by parts."""

import contextlib

import numpy as np
import pytest
import tensorflow as tf

from blockcell import op_table
from blockcell.op_table import BLOCK_LSTM_V2, GRU_CELL, LSTM_CELL
from blockcell_tools.reference.inputs import scaled_error
from helpers import checks, gradient_cases, kernels, ways
from helpers.gradient_cases import GATES, OUTPUTS, STATES, TIME, WITH_SWITCH, inputs_for

LINES = gradient_cases.params(WITH_SWITCH)
FEWER = gradient_cases.params([each for each in WITH_SWITCH if each[0] != op_table.BLOCK_LSTM])


@contextlib.contextmanager
def control_flow(version):
    """Loops and conditionals of TensorFlow 1 or 2."""
    switches = {
        "v1": tf.compat.v1.disable_control_flow_v2,
        "v2": tf.compat.v1.enable_control_flow_v2,
    }
    switches[version]()
    try:
        yield
    finally:
        switches["v1" if ways.TF1 else "v2"]()


# Inside a while loop.


def rolled(call, op, names, steps=3):
    """The loss of `steps` applications of an op, each to the last h (and cs) of the one before."""
    loss = ways.loss_of(lambda outputs: outputs, names)

    def last(outputs, name):
        if op == op_table.BLOCK_GRU:
            return outputs["h_last"]
        return outputs[name][-1] if op in op_table.SEQUENCES else outputs[name]

    def next_inputs(inputs, outputs):
        state = {"h_prev": last(outputs, "h")}
        if "cs_prev" in inputs:
            state["cs_prev"] = last(outputs, "cs")
        return dict(inputs, **state)

    def in_loop(inputs):
        states = [name for name in ("h_prev", "cs_prev") if name in inputs]

        def body(step, total, *state):
            at = dict(inputs, **dict(zip(states, state)))
            outputs = call(at)
            after = next_inputs(at, outputs)
            new = [after[name] for name in states]
            for value, old in zip(new, state):
                value.set_shape(old.shape)
            return [step + 1, total + loss(outputs)] + new

        start = [tf.constant(0), tf.constant(0.0)] + [inputs[name] for name in states]
        return tf.while_loop(lambda step, *_: step < steps, body, start)[1]

    def unrolled(inputs):
        total = 0.0
        for _ in range(steps):
            outputs = call(inputs)
            total += loss(outputs)
            inputs = next_inputs(inputs, outputs)
        return total

    return in_loop, unrolled


def rolled_losses(op, attributes, names):
    return (
        rolled(ways.real(op, attributes), op, names)[0],
        rolled(ways.plain(op, attributes), op, names)[1],
    )


def full_inputs(op):
    """All steps take part: the state after the last one is the next state."""
    return inputs_for(op, time=2, length=2)


@pytest.mark.parametrize("op, attributes", FEWER)
@pytest.mark.parametrize("version", ["v1", "v2"])
def test_through_a_while_loop_in_a_graph(version, op, attributes):
    inputs = full_inputs(op)
    for names in (STATES[op], OUTPUTS[op]):
        real, plain = rolled_losses(op, attributes, names)
        with control_flow(version):
            got = ways.first_order("graph", real, inputs)
        checks.assert_close(got, ways.true_gradients(plain, inputs), 1e-5)


@pytest.mark.skipif(ways.TF1, reason="TensorFlow 2 only")
@pytest.mark.parametrize("op, attributes", FEWER)
def test_through_a_while_loop_in_a_function(op, attributes):
    inputs = full_inputs(op)
    real, plain = rolled_losses(op, attributes, OUTPUTS[op])
    got = ways.first_order("tape_around_function", real, inputs)
    checks.assert_close(got, ways.true_gradients(plain, inputs), 1e-5)


def test_second_order_through_a_while_loop():
    """TensorFlow 1's loops have no second derivatives; version 2 of control flow has."""
    op = BLOCK_LSTM_V2
    inputs = full_inputs(op)
    real, plain = rolled_losses(op, {}, STATES[op])
    with control_flow("v2"):
        got = ways.second_order("graph", real, inputs)
    checks.assert_close(got, ways.true_gradients(plain, inputs, order=2), 1e-5)


# TensorFlow 2 only from here on.

only_in_tf2 = pytest.mark.skipif(ways.TF1, reason="TensorFlow 2 only")


def tensors_for(op, **sizes):
    return {name: tf.constant(value) for name, value in inputs_for(op, **sizes).items()}


@only_in_tf2
@pytest.mark.parametrize("op, attributes", LINES)
def test_persistent_tape(op, attributes):
    tensors = tensors_for(op)
    sources = ways.floating(tensors)
    choices = [STATES[op][-1:], GATES[op][:1], OUTPUTS[op]]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(sources)
        outputs = kernels.call(op, tensors, **attributes)
        losses = [ways.loss_of(lambda _: outputs, names)(tensors) for names in choices]
        inside = tape.gradient(losses[0], sources)  # Recorded itself.
        second = tf.add_n([tf.reduce_sum(value**2) for value in inside.values()])
    for loss, names in zip(losses + losses[:1], choices + choices[:1]):
        want = ways.truth(op, inputs_for(op), names, attributes)
        got = {name: value.numpy() for name, value in tape.gradient(loss, sources).items()}
        checks.assert_close(got, want, 1e-5)
    got = {name: value.numpy() for name, value in tape.gradient(second, sources).items()}
    plain = ways.loss_of(ways.plain(op, attributes), choices[0])
    checks.assert_close(got, ways.true_gradients(sum_of_squares(plain), inputs_for(op)), 1e-5)


def sum_of_squares(loss):
    """A loss on the gradients of another loss."""

    def squares(tensors):
        found = ways.by_gradients(loss, tensors).values()
        return tf.add_n([tf.reduce_sum(value**2) for value in found if value is not None])

    return squares


@only_in_tf2
@pytest.mark.parametrize("wanted", ["x", "h_prev", "w", "wco", "b"])
@pytest.mark.parametrize("op", [LSTM_CELL, BLOCK_LSTM_V2])
def test_one_gradient_alone(op, wanted):
    """A tape says which gradients nobody asks for, and some of those are not computed."""
    attributes = {"use_peephole": True, "cell_clip": 0.0}
    tensors = tensors_for(op)
    for names in (STATES[op], OUTPUTS[op]):
        with tf.GradientTape() as tape:
            tape.watch(tensors[wanted])
            loss = ways.loss_of(ways.real(op, attributes), names)(tensors)
        got = tape.gradient(loss, tensors[wanted]).numpy()
        want = ways.truth(op, inputs_for(op), names, attributes)[wanted]
        assert scaled_error(got, want) < 1e-5


def true_jacobian(op, attributes, inputs, output, source):
    with tf.Graph().as_default() as graph:
        tensors = ways.in_float64(inputs)
        value = ways.plain(op, attributes)(tensors)[output]
        flat = tf.reshape(value, [int(np.prod(value.shape))])
        rows = [tf.gradients(flat[k], tensors[source])[0] for k in range(int(flat.shape[0]))]
        shape = value.shape.as_list() + list(inputs[source].shape)
    with tf.compat.v1.Session(graph=graph) as session:
        return np.reshape(session.run(rows), shape)


@only_in_tf2
@pytest.mark.parametrize("options", [dict(), dict(experimental_use_pfor=False)], ids=str)
@pytest.mark.parametrize("op, attributes", LINES)
def test_jacobian(op, attributes, options):
    """With pfor, which runs the ops that it has no rule for in a loop; and without."""
    sizes = dict(batch=2, cell_size=2, time=2)
    inputs = inputs_for(op, **sizes)
    tensors = tensors_for(op, **sizes)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(tensors["h_prev"])
        outputs = kernels.call(op, tensors, **attributes)
    for name in (STATES[op][-1], GATES[op][0]):
        got = tape.jacobian(outputs[name], tensors["h_prev"], **options).numpy()
        want = true_jacobian(op, attributes, inputs, name, "h_prev")
        assert scaled_error(got, want) < 1e-5


@only_in_tf2
@pytest.mark.parametrize("op, attributes", LINES)
def test_forward_mode(op, attributes):
    sizes = dict(batch=2, cell_size=2, time=2)
    inputs, tensors = inputs_for(op, **sizes), tensors_for(op, **sizes)
    with tf.autodiff.ForwardAccumulator(tensors["x"], tf.ones_like(tensors["x"])) as accumulator:
        outputs = kernels.call(op, tensors, **attributes)
    for name in (STATES[op][-1], GATES[op][0]):
        want = true_jacobian(op, attributes, inputs, name, "x")
        want = want.sum(axis=tuple(range(-inputs["x"].ndim, 0)))
        assert scaled_error(accumulator.jvp(outputs[name]).numpy(), want) < 1e-5


@only_in_tf2
def test_vectorized_map():
    """One gradient for each of several x."""
    inputs, tensors = inputs_for(GRU_CELL), tensors_for(GRU_CELL)
    loss = ways.loss_of(ways.real(GRU_CELL, {}), ("r", "h"))
    factors = np.array([0.5, 1.0, -2.0], "f")

    def one(factor):
        return ways.by_tape(loss, dict(tensors, x=tensors["x"] * factor))["x"]

    got = tf.vectorized_map(one, tf.constant(factors)).numpy()
    for factor, gradient in zip(factors, got):
        at = dict(inputs, x=inputs["x"] * factor)
        want = ways.truth(GRU_CELL, at, ("r", "h"), {})["x"]
        assert scaled_error(gradient, want) < 1e-5


@pytest.mark.parametrize("op, attributes", LINES)
def test_static_shapes_survive(op, attributes):
    """What is known of a gradient's shape is what is known of its input's."""
    with ways.our_graph():
        for time in (None, TIME[1]):
            feeds = {}
            for name, value in inputs_for(op).items():
                shape = [None] * value.ndim if time is None else value.shape
                feeds[name] = tf.compat.v1.placeholder(value.dtype, shape)
            for names in (STATES[op], OUTPUTS[op]):
                loss = ways.loss_of(ways.real(op, attributes), names)
                for name, gradient in ways.by_gradients(loss, feeds).items():
                    assert gradient.shape.as_list() == feeds[name].shape.as_list(), name
