"""Gradients of GRUBlockCell and LSTMBlockCell, against finite differences of the float64 cells."""

import contextlib

import numpy as np
import pytest
import tensorflow as tf

import cases
import kernels
import oracle
from blockcell.gradients import gru, lstm
from cases import GRU, LSTM

TF1 = tf.__version__.startswith("1.")
CELLS = {GRU: "GRUBlockCell", LSTM: "LSTMBlockCell"}
GATES = {GRU: ("r", "u", "c"), LSTM: ("i", "f", "o", "ci", "co")}
STATES = {GRU: ("h",), LSTM: ("cs", "h")}

# TensorFlow 1.15 has gradients of its own, in tf.contrib; ours is reached under another name.
tf.RegisterGradient("TestedGRUBlockCell")(gru.gru_block_cell_gradient)
tf.RegisterGradient("TestedLSTMBlockCell")(lstm.lstm_block_cell_gradient)


@contextlib.contextmanager
def our_graph():
    """A graph in which gradients are computed by our kernels."""
    graph = tf.Graph()
    with graph.as_default(), graph._kernel_label_map({op: kernels.OURS for op in CELLS}):
        yield graph


def cell(op, inputs, **attributes):
    """The cell whose gradient is `op`, differentiated by our function in every kind of graph."""
    graph = tf.compat.v1.get_default_graph()
    with graph.gradient_override_map({CELLS[op]: "Tested" + CELLS[op]}):
        outputs = getattr(tf.raw_ops, CELLS[op])(**inputs, **attributes)
    return dict(outputs._asdict())


def weighted_sum(outputs, weights):
    """A loss whose gradient with respect to each output is that output's weights."""
    terms = [
        tf.reduce_sum(outputs[name] * tf.cast(weights[name], outputs[name].dtype))
        for name in weights
    ]
    return tf.add_n(terms)


def by_tape(op, inputs, weights, **attributes):
    inputs = {name: tf.constant(value) for name, value in inputs.items()}
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        loss = weighted_sum(cell(op, inputs, **attributes), weights)
    return {name: value.numpy() for name, value in tape.gradient(loss, inputs).items()}


def by_function(op, inputs, weights, **attributes):
    """A tape around a tf.function, whose shapes are all unknown."""

    @tf.function(
        input_signature=[{name: tf.TensorSpec(None, v.dtype) for name, v in inputs.items()}]
    )
    def run(inputs):
        return weighted_sum(cell(op, inputs, **attributes), weights)

    inputs = {name: tf.constant(value) for name, value in inputs.items()}
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        loss = run(inputs)
    return {name: value.numpy() for name, value in tape.gradient(loss, inputs).items()}


def by_tape_in_function(op, inputs, weights, **attributes):
    @tf.function
    def run(inputs):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            loss = weighted_sum(cell(op, inputs, **attributes), weights)
        return tape.gradient(loss, inputs)

    inputs = {name: tf.constant(value) for name, value in inputs.items()}
    return {name: value.numpy() for name, value in run(inputs).items()}


def by_graph(op, inputs, weights, **attributes):
    """tf.gradients with placeholders of unknown shape."""
    with our_graph() as graph:
        feeds = {name: tf.compat.v1.placeholder(value.dtype) for name, value in inputs.items()}
        loss = weighted_sum(cell(op, feeds, **attributes), weights)
        gradients = dict(zip(feeds, tf.gradients(loss, list(feeds.values()))))
    with tf.compat.v1.Session(graph=graph) as session:
        return session.run(gradients, {feeds[name]: value for name, value in inputs.items()})


WAYS = [by_graph] if TF1 else [by_graph, by_tape, by_function, by_tape_in_function]

LOSSES = {
    GRU: [("h",), ("r",), ("u",), ("c",), ("r", "u", "c"), ("r", "h"), ("r", "u", "c", "h")],
    LSTM: [
        ("h",),
        ("cs",),
        ("cs", "h"),
        ("i",),
        ("f",),
        ("o",),
        ("ci",),
        ("co",),
        ("o", "h"),
        ("i", "cs", "f", "o", "ci", "co", "h"),
    ],
}
VARIANTS = [(GRU, {})] + [(LSTM, {"use_peephole": p, "cell_clip": 0.0}) for p in (False, True)]
EVERYTHING = [
    pytest.param(
        op,
        attributes,
        loss,
        id="{}{}-{}".format(
            CELLS[op], "-peephole" if attributes.get("use_peephole") else "", "+".join(loss)
        ),
    )
    for op, attributes in VARIANTS
    for loss in LOSSES[op]
]


def numeric(op, inputs, weights, **attributes):
    def forward(**at):
        if op == GRU:
            return oracle.gru_block_cell(**at)
        return oracle.lstm_block_cell(**at, **attributes)

    return oracle.numeric_gradients(forward, inputs, weights)


def loss_weights(outputs, batch, cell_size, seed=11):
    random = np.random.RandomState(seed)
    return {name: random.standard_normal([batch, cell_size]).astype("f") for name in outputs}


@pytest.mark.parametrize("op, attributes, loss", EVERYTHING)
@pytest.mark.parametrize("gradient", WAYS)
def test_every_gradient(gradient, op, attributes, loss):
    inputs = cases.forward_inputs(op, 3, 2, 4)
    weights = loss_weights(loss, 3, 4)
    got = gradient(op, inputs, weights, **attributes)
    cases.assert_close(got, numeric(op, inputs, weights, **attributes), 1e-5)


@pytest.mark.parametrize("loss", [("cs", "h"), ("i", "f", "o", "ci", "co")])
@pytest.mark.parametrize("use_peephole", [False, True])
@pytest.mark.parametrize("gradient", WAYS)
def test_half(gradient, use_peephole, loss):
    attributes = {"use_peephole": use_peephole, "cell_clip": 0.0}
    inputs = cases.forward_inputs(LSTM, 3, 2, 4, dtype=np.float16)
    weights = {name: value.astype(np.float16) for name, value in loss_weights(loss, 3, 4).items()}
    got = gradient(LSTM, inputs, weights, **attributes)
    assert all(value.dtype == np.float16 for value in got.values())
    # The forward pass is the stock kernel's, which is off by up to 2e-2 in half.
    cases.assert_close(got, numeric(LSTM, inputs, weights, **attributes), 3e-2)


@pytest.mark.parametrize("gradient", WAYS)
def test_clipping_counts_as_the_identity(gradient):
    inputs = cases.forward_inputs(LSTM, 3, 2, 4)
    weights = loss_weights(("cs", "i"), 3, 4)
    attributes = {"use_peephole": False, "cell_clip": 1e-3}
    clipped = oracle.lstm_block_cell(**inputs, **attributes)
    assert (np.abs(clipped["cs"]) == 1e-3).mean() > 0.9
    # cs and i of the clipped cell do not involve co and o, so the identity is all there is to it.
    want = numeric(LSTM, inputs, weights, use_peephole=False, cell_clip=0.0)
    cases.assert_close(gradient(LSTM, inputs, weights, **attributes), want, 1e-5)


@pytest.mark.parametrize("gradient", WAYS)
@pytest.mark.parametrize("loss", [("h",), ("r", "h")])
def test_an_empty_batch_has_zero_weight_gradients(gradient, loss):
    inputs = cases.forward_inputs(GRU, 0, 2, 4)
    got = gradient(GRU, inputs, loss_weights(loss, 0, 4))
    cases.assert_close(got, {name: np.zeros_like(value) for name, value in inputs.items()}, 0)


def test_peephole_vectors_of_another_length_without_peepholes():
    inputs = cases.forward_inputs(LSTM, 3, 2, 4)
    inputs.update(wci=np.ones(1, "f"), wcf=np.ones(0, "f"), wco=np.ones(9, "f"))
    for loss in (("cs", "h"), ("i", "h")):
        got = by_graph(LSTM, inputs, loss_weights(loss, 3, 4), use_peephole=False, cell_clip=0.0)
        for name in cases.PEEPHOLES:
            np.testing.assert_array_equal(got[name], np.zeros_like(inputs[name]))


def test_gradient_in_slices():
    """tf.gather hands its gradient over as IndexedSlices."""
    inputs = cases.forward_inputs(GRU, 3, 2, 4)
    for output in ("h", "r"):
        weights = np.zeros([3, 4])
        weights[[0, 2]] = 1.0
        with our_graph() as graph:
            tensors = {name: tf.constant(value) for name, value in inputs.items()}
            loss = tf.reduce_sum(tf.gather(cell(GRU, tensors)[output], [0, 2]))
            gradients = dict(zip(tensors, tf.gradients(loss, list(tensors.values()))))
        with tf.compat.v1.Session(graph=graph) as session:
            got = session.run(
                {name: value for name, value in gradients.items() if value is not None}
            )
        want = numeric(GRU, inputs, {output: weights})
        cases.assert_close(got, {name: want[name] for name in got}, 1e-5)


# No cost when only the states are used.


def ops_of_gradient(op, attributes, loss, in_loop=False):
    """How many nodes of each type the gradient graph has."""
    with our_graph() as graph:
        inputs = cases.forward_inputs(op, 3, 2, 4)
        feeds = {name: tf.compat.v1.placeholder(value.dtype) for name, value in inputs.items()}
        weights = loss_weights(loss, 3, 4)

        def body(step, total):
            return step + 1, total + weighted_sum(cell(op, feeds, **attributes), weights)

        if in_loop:
            _, value = tf.while_loop(lambda step, _: step < 2, body, (0, 0.0))
        else:
            _, value = body(0, 0.0)
        before = len(graph.get_operations())
        tf.gradients(value, list(feeds.values()))
        types = [node.type for node in graph.get_operations()[before:]]
    return {kind: types.count(kind) for kind in set(types)}


@pytest.mark.parametrize("in_loop", [False, True])
@pytest.mark.parametrize("op, attributes", VARIANTS)
def test_unused_outputs_cost_nothing(op, attributes, in_loop):
    if in_loop and not TF1:
        tf.compat.v1.disable_control_flow_v2()  # Else the loop's nodes are in a function.
    try:
        states = ops_of_gradient(op, attributes, STATES[op], in_loop)
        everything = ops_of_gradient(op, attributes, STATES[op] + GATES[op], in_loop)
    finally:
        if not TF1:
            tf.compat.v1.enable_control_flow_v2()
    assert states[op] == everything[op] == 1
    assert states["MatMul"] == 2
    assert everything["MatMul"] == (4 if op == GRU else 2)
    elementwise = [states.get(kind, 0) for kind in ("Mul", "Sub")]
    more = [everything.get(kind, 0) for kind in ("Mul", "Sub")]
    assert more[0] > elementwise[0] + 3 and more[1] > elementwise[1] + 2


@pytest.mark.skipif(TF1, reason="TensorFlow 2 only")
@pytest.mark.parametrize("op, attributes", VARIANTS)
def test_unused_outputs_cost_nothing_under_a_tape_in_a_function(op, attributes):
    def products(loss):
        @tf.function
        def run(inputs):
            with tf.GradientTape() as tape:
                tape.watch(inputs)
                value = weighted_sum(cell(op, inputs, **attributes), weights)
            return tape.gradient(value, inputs)

        weights = loss_weights(loss, 3, 4)
        inputs = {name: tf.constant(v) for name, v in cases.forward_inputs(op, 3, 2, 4).items()}
        nodes = run.get_concrete_function(inputs).graph.get_operations()
        return sum(node.type in ("MatMul", "Mul") for node in nodes)

    gates = len(GATES[op])
    assert products(STATES[op]) + gates < products(STATES[op] + GATES[op])


# Loops and tapes.


def rolled(op, inputs, steps, **attributes):
    """The sum of h over `steps` applications of the cell to the same x, in a while loop."""

    def body(step, total, *state):
        names = ("cs_prev", "h_prev") if op == LSTM else ("h_prev",)
        outputs = cell(op, dict(inputs, **dict(zip(names, state))), **attributes)
        state = [outputs[name] for name in STATES[op]]
        return (step + 1, total + tf.reduce_sum(outputs["h"])) + tuple(state)

    states = [inputs[name] for name in ("cs_prev", "h_prev") if name in inputs]
    return tf.while_loop(lambda step, *_: step < steps, body, [0, 0.0] + states)[1]


def unrolled_numeric(op, inputs, steps, **attributes):
    def forward(**at):
        total = 0.0
        for _ in range(steps):
            if op == GRU:
                outputs = oracle.gru_block_cell(**at)
            else:
                outputs = oracle.lstm_block_cell(**at, **attributes)
                at = dict(at, cs_prev=outputs["cs"])
            at = dict(at, h_prev=outputs["h"])
            total = total + outputs["h"]
        return {"total": total}

    return oracle.numeric_gradients(forward, inputs, {"total": np.ones([3, 4])})


@pytest.mark.parametrize("control_flow", ["v1", "v2"])
@pytest.mark.parametrize("op, attributes", VARIANTS)
def test_through_a_while_loop_in_a_graph(op, attributes, control_flow):
    inputs = cases.forward_inputs(op, 3, 2, 4)
    switch = getattr(
        tf.compat.v1, {"v1": "disable", "v2": "enable"}[control_flow] + "_control_flow_v2"
    )
    restore = tf.compat.v1.disable_control_flow_v2 if TF1 else tf.compat.v1.enable_control_flow_v2
    switch()
    try:
        with our_graph() as graph:
            shapes = {name: [None] * value.ndim for name, value in inputs.items()}
            feeds = {
                name: tf.compat.v1.placeholder(tf.float32, shape) for name, shape in shapes.items()
            }
            loss = rolled(op, feeds, 3, **attributes)
            gradients = dict(zip(feeds, tf.gradients(loss, list(feeds.values()))))
    finally:
        restore()
    with tf.compat.v1.Session(graph=graph) as session:
        got = session.run(gradients, {feeds[name]: value for name, value in inputs.items()})
    cases.assert_close(got, unrolled_numeric(op, inputs, 3, **attributes), 1e-5)


@pytest.mark.skipif(TF1, reason="TensorFlow 2 only")
@pytest.mark.parametrize("op, attributes", VARIANTS)
def test_through_a_while_loop_in_a_function(op, attributes):
    inputs = cases.forward_inputs(op, 3, 2, 4)
    signature = {name: tf.TensorSpec([None] * v.ndim, v.dtype) for name, v in inputs.items()}
    run = tf.function(lambda at: rolled(op, at, 3, **attributes), input_signature=[signature])
    tensors = {name: tf.constant(value) for name, value in inputs.items()}
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        loss = run(tensors)
    got = {name: value.numpy() for name, value in tape.gradient(loss, tensors).items()}
    cases.assert_close(got, unrolled_numeric(op, inputs, 3, **attributes), 1e-5)


@pytest.mark.skipif(TF1, reason="TensorFlow 2 only")
def test_persistent_tape():
    inputs = cases.forward_inputs(GRU, 3, 2, 4)
    tensors = {name: tf.constant(value) for name, value in inputs.items()}
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(tensors)
        outputs = cell(GRU, tensors)
        losses = {name: tf.reduce_sum(outputs[name]) for name in ("h", "u")}
    for name in ("h", "u", "h"):
        got = {key: value.numpy() for key, value in tape.gradient(losses[name], tensors).items()}
        cases.assert_close(got, numeric(GRU, inputs, {name: np.ones([3, 4])}), 1e-5)


@pytest.mark.skipif(TF1, reason="TensorFlow 2 only")
@pytest.mark.parametrize("wanted", ["x", "h_prev", "w", "wco", "b"])
def test_one_gradient_alone(wanted):
    """A tape says which gradients nobody asks for, and those are not computed."""
    attributes = {"use_peephole": True, "cell_clip": 0.0}
    inputs = cases.forward_inputs(LSTM, 3, 2, 4)
    weights = loss_weights(("h",), 3, 4)
    tensors = {name: tf.constant(value) for name, value in inputs.items()}
    with tf.GradientTape() as tape:
        tape.watch(tensors[wanted])
        loss = weighted_sum(cell(LSTM, tensors, **attributes), weights)
    got = tape.gradient(loss, tensors[wanted]).numpy()
    want = numeric(LSTM, inputs, weights, **attributes)[wanted]
    assert cases.scaled_error(got, want) < 1e-5


@pytest.mark.skipif(not TF1, reason="TensorFlow 1.15 only")
def test_contrib_keeps_its_own_gradients():
    from tensorflow.contrib.rnn.python.ops import gru_ops, lstm_ops
    from tensorflow.python.framework import ops

    for name, module in (("GRUBlockCell", gru_ops), ("LSTMBlockCell", lstm_ops)):
        assert ops._gradient_registry.lookup(name).__module__ == module.__name__
