"""Gradients of gradients, against those of the same op in plain float64."""

import numpy as np
import pytest
import tensorflow as tf

from blockcell import op_table
from blockcell.op_table import BLOCK_LSTM_V2, LSTM_CELL
from blockcell_tools.reference.inputs import expected, inputs_of, scaled_error
from helpers import checks, gradient_cases, ways
from helpers.gradient_cases import GATES, OUTPUTS, STATES, TIME, VARIANTS, WITH_SWITCH, inputs_for

WITHOUT_SWITCH = [variant for variant in VARIANTS if variant not in WITH_SWITCH]
MIXTURES = gradient_cases.with_losses(
    lambda op: [STATES[op][-1:], GATES[op][-1:], OUTPUTS[op]], WITH_SWITCH
) + gradient_cases.with_losses(lambda op: [STATES[op]], WITHOUT_SWITCH)


@pytest.mark.parametrize("op, attributes, names", MIXTURES)
@pytest.mark.parametrize("way", ["graph" if ways.TF1 else "tape"])
def test_penalty_on_all_gradients(way, op, attributes, names):
    gradient_cases.check(way, op, attributes, names, order=2)


OTHER_WAYS = [("graph", op, attributes) for op, attributes in WITH_SWITCH] + [
    (way, BLOCK_LSTM_V2, {"use_peephole": True})
    for way in ways.WAYS
    if way not in ("graph", "tape")
]


@pytest.mark.skipif(ways.TF1, reason="TensorFlow 2 only")
@pytest.mark.parametrize("way, op, attributes", OTHER_WAYS, ids=lambda part: str(part))
def test_every_way(way, op, attributes):
    gradient_cases.check(way, op, attributes, STATES[op], order=2)


@pytest.mark.parametrize("way", ["graph" if ways.TF1 else "tape"])
@pytest.mark.parametrize("dtype", op_table.OF_16_BITS)
@pytest.mark.parametrize("op, attributes", gradient_cases.params(WITH_SWITCH[1:]))
def test_16_bits(way, op, attributes, dtype):
    if dtype not in op_table.OPS[op].dtypes:
        pytest.skip("there is no kernel")
    inputs, limit = inputs_for(op, dtype=dtype, time=TIME[2]), 3e-2 if dtype == np.float16 else 8e-2
    gradient_cases.check(way, op, attributes, STATES[op], order=2, inputs=inputs, limit=limit)


def penalty_on_x(op, attributes, gradients):
    """The usual gradient penalty: how steep h is along x."""
    loss = ways.loss_of(ways.real(op, attributes), ("h",))
    return lambda tensors: tf.reduce_sum(tf.square(gradients(loss, tensors)["x"]))


@pytest.mark.parametrize("op, attributes", gradient_cases.params(WITH_SWITCH))
def test_gradients_by_finite_differences_of_first_order(op, attributes):
    """Along a random direction of all inputs, from first order gradients of float32 kernels."""
    if "cell_clip" in attributes:
        attributes = dict(attributes, cell_clip=0.0)  # Of which differences do see something.
    inputs = inputs_for(op)
    random = np.random.RandomState(5)
    direction = {n: random.standard_normal(v.shape) for n, v in ways.floating(inputs).items()}
    step = 3e-3
    names = list(direction)
    with ways.our_graph() as graph:
        feeds = {n: tf.compat.v1.placeholder(v.dtype, v.shape) for n, v in inputs.items()}
        loss = penalty_on_x(op, attributes, ways.by_gradients)(feeds)
        gradients = tf.gradients(loss, [feeds[name] for name in names])
        gradients = {n: value for n, value in zip(names, gradients) if value is not None}

    with tf.compat.v1.Session(graph=graph) as session:

        def at(fetches, distance):
            moved = {n: inputs[n] + distance * direction[n] for n in names}
            return session.run(fetches, {feeds[n]: dict(inputs, **moved)[n] for n in inputs})

        want = (at(loss, step) - at(loss, -step)).astype(float) / (2 * step)
        got = sum(np.sum(g.astype(float) * direction[n]) for n, g in at(gradients, 0).items())
    assert abs(got - want) < 3e-3 * abs(want)


@pytest.mark.skipif(ways.TF1, reason="TensorFlow 2 only")
@pytest.mark.parametrize("op, attributes", gradient_cases.params(WITH_SWITCH))
def test_hessian_is_symmetric(op, attributes):
    inputs = inputs_for(op, batch=2, cell_size=2, time=2)
    tensors = {name: tf.constant(value) for name, value in inputs.items()}
    loss = ways.loss_of(ways.real(op, attributes), OUTPUTS[op])
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(ways.floating(tensors))
        x_grad, h_prev_grad = (ways.by_tape(loss, tensors)[name] for name in ("x", "h_prev"))
    one = outer.jacobian(x_grad, tensors["h_prev"], experimental_use_pfor=False).numpy()
    other = outer.jacobian(h_prev_grad, tensors["x"], experimental_use_pfor=False).numpy()
    assert scaled_error(one, np.moveaxis(other, [0, 1], [-2, -1])) < 1e-5


@pytest.mark.skipif(ways.TF1, reason="TensorFlow 2 only")
def test_hessian_vector_products():
    """Backward over backward, and forward over backward, in a function."""
    op, attributes = BLOCK_LSTM_V2, {}
    inputs = inputs_for(op, time=TIME[2])
    vector = np.random.RandomState(3).standard_normal(inputs["x"].shape).astype("f")
    loss = ways.loss_of(ways.real(op, attributes), ("h",))

    @tf.function
    def products(tensors):
        with tf.GradientTape() as outer:
            outer.watch(tensors["x"])
            x_grad = ways.by_tape(loss, tensors)["x"]
        backward = outer.gradient(x_grad, tensors["x"], output_gradients=vector)
        with tf.autodiff.ForwardAccumulator(tensors["x"], tf.constant(vector)) as accumulator:
            x_grad = ways.by_tape(loss, tensors)["x"]
        return backward, accumulator.jvp(x_grad)

    got = products({name: tf.constant(value) for name, value in inputs.items()})

    with tf.Graph().as_default() as graph:
        plain = ways.in_float64(inputs)
        value = ways.loss_of(ways.plain(op, attributes), ("h",))(plain)
        along = tf.reduce_sum(tf.gradients(value, plain["x"])[0] * vector)
        product = tf.gradients(along, plain["x"])[0]
    with tf.compat.v1.Session(graph=graph) as session:
        want = session.run(product)
    for product in got:
        assert scaled_error(product.numpy(), want) < 1e-5


@pytest.mark.skipif(ways.TF1, reason="TensorFlow 2 only")
def test_third_order():
    for op in (LSTM_CELL, BLOCK_LSTM_V2):
        inputs, names = inputs_for(op, time=TIME[3]), STATES[op]
        want = ways.truth(op, inputs, names, {}, order=3)
        loss = ways.loss_of(ways.real(op, {}), names)
        penalty = ways.penalty_of(ways.by_tape, ways.penalty_of(ways.by_tape, loss))
        checks.assert_close(ways.run_eagerly(ways.by_tape, penalty, inputs), want, 1e-4, op)


# Gradient ops on inputs of their own: every input is independent of every other.


@pytest.mark.parametrize("op, attributes", gradient_cases.params(WITH_SWITCH))
def test_inputs_of_gradient_ops_are_independent(op, attributes):
    """The op's inputs, activations too, are random; each gradient by a difference along it."""
    op, attributes = gradient_cases.GRADIENT_OPS[op], dict(attributes)
    attributes.pop("cell_clip", None)
    inputs = inputs_of(op, 3, 2, 4, time=3, length=2, **attributes)
    random = np.random.RandomState(8)
    names = list(ways.floating(inputs))
    inputs.update((n, random.uniform(-1, 1, inputs[n].shape).astype("f")) for n in names)
    loss = ways.loss_of(ways.real(op, attributes), op_table.OPS[op].outputs)
    with ways.our_graph() as graph:
        feeds = {n: tf.compat.v1.placeholder(v.dtype, v.shape) for n, v in inputs.items()}
        value = loss(feeds)
        gradients = dict(zip(names, tf.gradients(value, [feeds[name] for name in names])))
    numeric = oracle_loss(op, attributes)
    with tf.compat.v1.Session(graph=graph) as session:
        fetches = {n: value for n, value in gradients.items() if value is not None}
        got = session.run(fetches, {feeds[n]: inputs[n] for n in inputs})
    for name in names:
        direction = random.standard_normal(inputs[name].shape)
        above, below = (
            numeric(dict(inputs, **{name: inputs[name] + distance * direction}))
            for distance in (1e-5, -1e-5)
        )
        want = (above - below) / 2e-5
        along = np.sum(got[name].astype(float) * direction) if name in got else 0.0
        scale = np.abs(got[name]).max() * direction.size if name in got else 1.0
        assert abs(along - want) < 1e-5 * max(scale, 1e-2), name


def oracle_loss(op, attributes):
    """`ways.loss_of` the op, by the float64 oracle."""

    def loss(inputs):
        outputs = expected(op, inputs, **attributes)
        factors = ways.weights(outputs)
        return sum(np.sum(f * outputs[n] * (outputs[n] + f)) for n, f in factors.items())

    return loss


def test_gradient_ops_that_the_loss_uses_in_part():
    """Only some outputs of the gradient op count: the others' gradients are absent."""
    inputs = inputs_of("LSTMBlockCellGrad", 3, 2, 4, use_peephole=True)
    for names in (["dicfo"], ["cs_prev_grad"], ["wco_grad"]):
        loss = ways.loss_of(ways.real("LSTMBlockCellGrad", {"use_peephole": True}), names)
        got = ways.first_order("graph", loss, inputs)
        numeric = oracle_loss_of_some("LSTMBlockCellGrad", names)
        direction = np.random.RandomState(2).standard_normal(inputs["i"].shape)
        for name in ("i", "cs", "o", "co", "h_grad", "cs_grad"):
            above, below = (
                numeric(dict(inputs, **{name: inputs[name] + distance * direction}))
                for distance in (1e-5, -1e-5)
            )
            assert abs((above - below) / 2e-5 - np.sum(got[name] * direction)) < 1e-4, name


def oracle_loss_of_some(op, names):
    def loss(inputs):
        outputs = expected(op, inputs, use_peephole=True)
        factors = ways.weights(names)
        return sum(np.sum(f * outputs[n] * (outputs[n] + f)) for n, f in factors.items())

    return loss
