"""Steps of plain cells with factors of any shapes that broadcast, and near misses of steps."""

import tensorflow as tf

from traps.net import BATCH, CELL, INPUT, trap

v1 = tf.compat.v1


def step(net, x, h, c, peepholes=None, forget=lambda f: f + 1.0, bound=None, weights=None):
    """A step of an LSTM cell: h and c after it."""
    w, b = weights or (net.weights(), net.variable(4 * CELL))
    z = tf.nn.bias_add(tf.matmul(tf.concat([x, h], 1), w), b)
    i, j, f, o = tf.split(z, 4, 1)
    f = forget(f)
    if peepholes:
        i, f = i + peepholes[0] * c, f + peepholes[1] * c
    c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(j)
    if bound:
        c = bound(c)
    if peepholes:
        o += peepholes[2] * c
    return tf.sigmoid(o) * tf.tanh(c), c


def trained(net, c=(BATCH, CELL), variables=(), **parts):
    """Two steps, and the gradients with respect to states and variables."""
    return gradients(net, net.tensor(*c), variables, **parts)


def gradients(net, c, variables, **parts):
    """The same from a cell state."""
    first = h, c = matrix(net, CELL), c
    for _ in range(2):
        h, c = step(net, matrix(net, INPUT), h, c, **parts)
    loss = tf.reduce_sum(h * h) + tf.reduce_sum(c * c)
    return [h, c, *v1.gradients(loss, [*first, *variables])]


def matrix(net, columns, rows=BATCH):
    """A tensor of which TensorFlow knows the number of columns."""
    tensor = net.tensor(rows, columns)
    tensor.set_shape([None, columns])
    return tensor


def with_peepholes(shape):
    def build(net):
        peepholes = [net.variable(*shape) for _ in range(3)]
        return trained(net, variables=peepholes, peepholes=peepholes)

    return build


SHAPES = {
    "vector": (CELL,),
    "row": (1, CELL),
    "number": (),
    "one": (1,),
    "column": (BATCH, 1),
    "matrix": (BATCH, CELL),
}
for kind, shape in SHAPES.items():
    trap(with_peepholes(shape), "peepholes_" + kind)


@trap
def peepholes_that_are_fed(net):
    peepholes = [net.tensor(*shape) for shape in ((CELL,), (1, CELL), (CELL,))]
    return trained(net, variables=peepholes, peepholes=peepholes)


@trap
def a_state_of_one_row(net):
    return trained(net, c=(1, CELL))


@trap
def a_state_of_one_row_and_peepholes(net):
    peepholes = [net.variable(CELL) for _ in range(3)]
    return step(net, matrix(net, INPUT), matrix(net, CELL), net.tensor(1, CELL), peepholes)


def gradients_of_a_state_and_peepholes(*shape, known=None):
    def build(net):
        peepholes = [net.variable(CELL) for _ in range(3)]
        state = net.tensor(*shape)
        state.set_shape(known)
        return gradients(net, state, peepholes, peepholes=peepholes)

    return build


for kind, shape, known in (
    ("row", (1, CELL), [None, CELL]),
    ("vector", (CELL,), None),
    ("column", (BATCH, 1), [None, None]),
    ("number", (), None),
):
    build = gradients_of_a_state_and_peepholes(*shape, known=known)
    trap(build, f"gradients_of_a_state_and_peepholes_{kind}")


@trap
def many_states_and_peepholes(net):
    x, h = matrix(net, INPUT, rows=1), matrix(net, CELL, rows=1)
    return step(net, x, h, net.tensor(BATCH, CELL), [net.variable(CELL) for _ in range(3)])


@trap
def gradients_of_many_states_and_peepholes(net):
    peepholes = [net.variable(CELL) for _ in range(3)]
    first = [matrix(net, INPUT, rows=1), matrix(net, CELL, rows=1), matrix(net, CELL)]
    weights = net.weights(), net.variable(4 * CELL)
    h, c = step(net, *first, peepholes, weights=weights)
    loss = tf.reduce_sum(h * h) + tf.reduce_sum(c * c)
    return [h, c, *v1.gradients(loss, [*first, *peepholes, *weights])]


def one_round(h_shape, c_shape):
    def build(net):
        weights = net.weights(INPUT + h_shape[1]), net.variable(4 * CELL)
        x, time = net.tensor(1, h_shape[0], INPUT), v1.placeholder(tf.int32, [])
        net.feeds[time] = 1
        inputs = tf.TensorArray(tf.float32, time).unstack(x)

        def body(t, outputs, h, c):
            x = inputs.read(t)
            for matrix_of_rows in (x, h):
                matrix_of_rows.set_shape([None, None])
            h, c = step(net, x, h, c, weights=weights)
            return t + 1, outputs.write(t, h), h, c

        start = tf.constant(0), tf.TensorArray(tf.float32, time)
        _, outputs, h, c = tf.while_loop(
            lambda t, *_: t < time, body, [*start, net.tensor(*h_shape), net.tensor(*c_shape)]
        )
        return outputs.stack(), h, c

    return build


trap(one_round((BATCH, CELL), (BATCH, CELL)), "one_round")
trap(one_round((BATCH, 2), (BATCH, CELL)), "one_round_of_a_narrow_output")
trap(one_round((1, CELL), (BATCH, CELL)), "one_round_of_many_states")


FORGET = {
    "plus_one": lambda f: f + 1.0,
    "three_times": lambda f: f + f + f,
    "three_at_once": lambda f: tf.add_n([f, f, f]),
    "twice_and_biased": lambda f: f + (f + 1.0),
    "less_one": lambda f: 1.0 - f,
    "scaled": lambda f: 0.5 * f + 1.0,
    "negated": lambda f: 1.0 - (f + 1.0),
}
for kind, forget in FORGET.items():
    trap(lambda net, forget=forget: trained(net, forget=forget), "forget_gate_" + kind)

BOUNDS = {
    "even": lambda c: tf.maximum(tf.minimum(c, 0.3), -0.3),
    "uneven": lambda c: tf.maximum(tf.minimum(c, 0.3), -0.299999),
    "of_one_side": lambda c: tf.maximum(tf.minimum(c, 0.3), 0.3 - c),
    "of_vectors": lambda c: tf.maximum(tf.minimum(c, [0.3] * CELL), [-0.3] * CELL),
}
for kind, bound in BOUNDS.items():
    trap(lambda net, bound=bound: trained(net, bound=bound), "state_bound_" + kind)
