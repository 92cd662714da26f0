"""What absent gradients save, and that only absent ones do."""

import logging
import sys

import numpy as np
import pytest
import tensorflow as tf

from blockcell.op_table import BLOCK_LSTM, GRU_CELL, SEQUENCES
from helpers import checks, gradient_cases, kernels, ways
from helpers.gradient_cases import GATES, GRADIENT_OPS, OUTPUTS, STATES, WITH_SWITCH, inputs_for

# What only the equations in plain ops need, and neither the kernels nor the weights' gradients.
ARITHMETIC = ("Mul", "While", "StatelessWhile", "TensorArrayV3")


def count(graph, before=0):
    """How many nodes of each type were added to a graph."""
    types = [node.type for node in graph.get_operations()[before:]]
    return {kind: types.count(kind) for kind in set(types)}


def linear_loss(op, attributes, names, tensors):
    """A loss whose gradients at the outputs are not computed from anything."""
    outputs = kernels.call(op, tensors, **attributes)
    return tf.add_n([tf.reduce_sum(outputs[name]) for name in names])


def nodes_in_graph(op, attributes, names, in_loop=False):
    with ways.our_graph() as graph:
        inputs = inputs_for(op)
        feeds = {name: tf.compat.v1.placeholder(value.dtype) for name, value in inputs.items()}

        def body(step, total):
            return step + 1, total + linear_loss(op, attributes, names, feeds)

        if in_loop:
            _, loss = tf.while_loop(lambda step, _: step < 2, body, (0, 0.0))
        else:
            _, loss = body(0, 0.0)
        before = len(graph.get_operations())
        tf.gradients(loss, list(ways.floating(feeds).values()))
        return count(graph, before)


def nodes_in_loop(op, attributes, names):
    if not ways.TF1:
        tf.compat.v1.disable_control_flow_v2()  # Else the loop's nodes are in a function.
    try:
        return nodes_in_graph(op, attributes, names, in_loop=True)
    finally:
        if not ways.TF1:
            tf.compat.v1.enable_control_flow_v2()


def nodes_under_tape(op, attributes, names, outer_tape=False):
    """The nodes of a function with a tape inside, and perhaps another tape around that."""

    @tf.function
    def run(tensors):
        with tf.GradientTape() as outer:
            if outer_tape:
                outer.watch(ways.floating(tensors))
            return ways.by_tape(lambda at: linear_loss(op, attributes, names, at), tensors)

    tensors = {name: tf.constant(value) for name, value in inputs_for(op).items()}
    return count(run.get_concrete_function(tensors).graph)


COUNTS = [nodes_in_graph, nodes_in_loop]
if not ways.TF1:
    COUNTS += [
        nodes_under_tape,
        lambda op, attributes, names: nodes_under_tape(op, attributes, names, outer_tape=True),
    ]


@pytest.mark.parametrize("op, attributes", gradient_cases.params(WITH_SWITCH))
@pytest.mark.parametrize("nodes", COUNTS)
def test_unused_outputs_cost_nothing(nodes, op, attributes):
    kernel = GRADIENT_OPS[op]
    for names in (STATES[op], STATES[op][-1:]):
        found = nodes(op, attributes, names)
        assert found[kernel] == 1
        # One product for r*h_prev, which GRUBlockCell does not return.
        assert sum(found.get(kind, 0) for kind in ARITHMETIC) == int(op == GRU_CELL), found
    everything = nodes(op, attributes, OUTPUTS[op])
    assert kernel not in everything
    assert sum(everything.get(kind, 0) for kind in ARITHMETIC) > 1


@pytest.mark.skipif(ways.TF1, reason="TensorFlow 2 only")
@pytest.mark.parametrize("op, attributes", gradient_cases.params(WITH_SWITCH))
def test_unused_outputs_cost_nothing_in_eager_mode(op, attributes, monkeypatch):
    """The gradient's equations in plain ops are not evaluated."""
    from blockcell.gradients import rules

    evaluated = []
    rule = rules.RULES[op]

    def recorded(call):
        evaluated.append(call)
        return rule.equations(call)

    monkeypatch.setitem(rules.RULES, op, rule._replace(equations=recorded))
    inputs = inputs_for(op)
    for names, times in ((STATES[op], 0), (OUTPUTS[op], 1)):
        loss = ways.loss_of(ways.real(op, attributes), names)
        ways.run_eagerly(ways.by_tape, loss, inputs)
        assert len(evaluated) == times


# Gradients that no kernel computes.


@pytest.mark.parametrize("op, attributes", gradient_cases.params(WITH_SWITCH))
def test_equations_instead_of_a_kernel_are_logged_once(op, attributes, monkeypatch, caplog):
    from blockcell.gradients import rules

    monkeypatch.setattr(rules, "_logged", set())
    caplog.set_level(logging.INFO, logger="blockcell")
    nodes_in_graph(op, attributes, STATES[op])
    assert not caplog.records
    for _ in range(2):
        nodes_in_graph(op, attributes, OUTPUTS[op])
    (record,) = caplog.records
    level = logging.WARNING if op in SEQUENCES else logging.INFO
    assert (record.name, record.levelno) == ("blockcell", level)
    said = record.getMessage()
    assert said.startswith(op + ": ") and GATES[op][0] in said and "tf.stop_gradient" in said


@pytest.mark.skipif(ways.TF1, reason="TensorFlow 2 only")
def test_a_tensorflow_that_does_not_say_what_a_tape_follows(monkeypatch, caplog):
    """Then zeros are computed with, which is slower, and said once."""
    from blockcell import tf_internals
    from blockcell.gradients import forward_call

    for module in ("tensorflow.python.pywrap_tfe", "tensorflow.python.eager.tape"):
        monkeypatch.setitem(sys.modules, module, None)
    forward_call._followers.cache_clear()
    monkeypatch.setattr(tf_internals, "_warned", set())
    try:
        assert forward_call.present(tf.zeros([2])) is not None
        assert forward_call.present(tf.zeros([2])) is not None
    finally:
        monkeypatch.undo()
        forward_call._followers.cache_clear()
    assert len(caplog.records) == 1 and tf_internals.WARNING in caplog.text
    assert forward_call.present(tf.zeros([2])) is None


# Zeros that somebody wants to differentiate with respect to are not absent gradients.


@pytest.mark.skipif(ways.TF1, reason="TensorFlow 2 only")
@pytest.mark.parametrize("in_function", [False, True])
@pytest.mark.parametrize("op", [GRU_CELL, BLOCK_LSTM])
def test_zeros_that_a_tape_watches(op, in_function):
    """The gradient of a gate, times 0, depends on that 0."""
    inputs = inputs_for(op)
    gate = GATES[op][0]

    def derivative(tensors):
        factor = tf.zeros_like(tensors["h_prev"][0, 0])
        with tf.GradientTape() as outer:
            outer.watch(factor)
            with tf.GradientTape() as tape:
                tape.watch(tensors["x"])
                output = kernels.call(op, tensors)[gate]
            zeros = tf.zeros_like(output) + factor
            x_grad = tape.gradient(output, tensors["x"], output_gradients=zeros)
            value = tf.reduce_sum(x_grad)
        return outer.gradient(value, factor)

    run = tf.function(derivative) if in_function else derivative
    got = run({name: tf.constant(value) for name, value in inputs.items()})
    true = ways.true_gradients(lambda at: tf.reduce_sum(ways.plain(op, {})(at)[gate]), inputs)
    want = true["x"].sum()
    assert abs(float(got) - want) < 1e-5 * abs(want)


@pytest.mark.parametrize("op", [GRU_CELL, BLOCK_LSTM])
def test_zeros_as_grad_ys(op):
    """Directional derivatives by two gradients: the first is linear in a dummy, which may be 0."""
    inputs = inputs_for(op)
    outputs = (STATES[op][-1], GATES[op][0])
    with ways.our_graph() as graph:
        tensors = {name: tf.constant(value) for name, value in inputs.items()}
        values = kernels.call(op, tensors)
        values = [values[name] for name in outputs]
        dummies = [tf.zeros_like(value) for value in values]
        x_grad = tf.gradients(values, tensors["x"], dummies)[0]
        along = tf.gradients(x_grad, dummies, tf.ones_like(x_grad))
    with tf.Graph().as_default() as plain_graph:
        tensors = ways.in_float64(inputs)
        plain = ways.plain(op, {})(tensors)
        plain = [plain[name] for name in outputs]
        dummies = [tf.zeros_like(value) for value in plain]
        x_grad = tf.gradients(plain, tensors["x"], dummies)[0]
        want = tf.gradients(x_grad, dummies, tf.ones_like(x_grad))
    with tf.compat.v1.Session(graph=graph) as session:
        got = dict(zip(outputs, session.run(along)))
    with tf.compat.v1.Session(graph=plain_graph) as session:
        want = dict(zip(outputs, session.run(want)))
    assert all(np.any(value) for value in want.values())
    checks.assert_close(got, want, 1e-5)
