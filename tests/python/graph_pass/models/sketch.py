"""A network that draws (sketch-rnn; Ha and Eck, 2017): a variational autoencoder of pen strokes.

Its cells are its own: weights for x and for h that are concatenated, a bias that a sum adds, and
dropout of the candidate. The decoder's cell normalizes each gate.
"""

import tensorflow as tf
from given import lengths_of, uniform

ROWS, STEPS, CELL, LATENT, MIXTURES = 3, 6, 8, 4, 3
STROKE, PEN = 5, 3
# Rounds side by side would draw their random numbers in any order.
LOOP = {"parallel_iterations": 1}
State = tf.nn.rnn_cell.LSTMStateTuple


class OwnLSTMCell(tf.nn.rnn_cell.RNNCell):
    """Gates i, j, f, o; what is kept of the candidate is scaled up, as dropout does it."""

    def __init__(self, units, keep=None):
        super().__init__()
        self._units, self._keep = units, keep

    @property
    def state_size(self):
        return State(self._units, self._units)

    @property
    def output_size(self):
        return self._units

    def gates(self, x, h):
        columns = 4 * self._units
        of_x = tf.get_variable("w_x", [x.shape[1], columns])
        of_h = tf.get_variable("w_h", [self._units, columns])
        bias = tf.get_variable("bias", [columns])
        z = tf.matmul(tf.concat([x, h], 1), tf.concat([of_x, of_h], 0)) + bias
        return tf.split(z, 4, 1)

    def normalized(self, c):
        return c

    def __call__(self, x, state, scope=None):
        with tf.variable_scope(scope or type(self).__name__, reuse=tf.AUTO_REUSE):
            i, j, f, o = self.gates(x, state.h)
            candidate = tf.tanh(j)
            if self._keep is not None:
                candidate = tf.nn.dropout(candidate, rate=1 - self._keep, seed=5)
            c = state.c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * candidate
            h = tf.tanh(self.normalized(c)) * tf.sigmoid(o)
        return h, State(c, h)


class NormalizedLSTMCell(OwnLSTMCell):
    """The same with normalized gates, without a bias, and with a normalized state."""

    def gates(self, x, h):
        columns = 4 * self._units
        of_x = tf.get_variable("w_x", [x.shape[1], columns])
        of_h = tf.get_variable("w_h", [self._units, columns])
        z = tf.matmul(tf.concat([x, h], 1), tf.concat([of_x, of_h], 0))
        return [scaled(part, f"gate_{k}") for k, part in enumerate(tf.split(z, 4, 1))]

    def normalized(self, c):
        return scaled(c, "state")


def scaled(x, name):
    """Mean zero and variance one in each row; then a scale and an offset for each column."""
    mean, variance = tf.nn.moments(x, [1], keep_dims=True)
    with tf.variable_scope(name):
        scale, offset = (tf.get_variable(part, [x.shape[1]]) for part in ("scale", "offset"))
    return (x - mean) * tf.rsqrt(variance + 1e-3) * scale + offset


def encoded(strokes, lengths, keep):
    """Mean and logarithm of the variance of the latent vector."""
    cells = [OwnLSTMCell(CELL, keep) for _ in range(2)]
    _, states = tf.nn.bidirectional_dynamic_rnn(
        *cells, inputs=strokes, sequence_length=lengths, dtype=tf.float32, scope="encoder", **LOOP
    )
    last = tf.concat([state.h for state in states], 1)
    return (tf.layers.dense(last, LATENT, name=name) for name in ("mean", "log_variance"))


def decoded(strokes, latent, keep, make):
    """What the mixture of each next stroke is made of: [rows, steps, 6 * MIXTURES + PEN]."""
    first = tf.layers.dense(latent, 2 * CELL, tf.tanh, name="first_state")
    shape = tf.shape(strokes)
    copies = tf.tile(latent[:, None], [1, shape[1], 1])
    outputs, _ = tf.nn.dynamic_rnn(
        make(CELL, keep),
        tf.concat([strokes, copies], 2),
        initial_state=State(*tf.split(first, 2, 1)),
        scope="decoder",
        **LOOP,
    )
    return tf.layers.dense(outputs, 6 * MIXTURES + PEN, name="mixture")


def density(x, y, parts):
    """The logarithm of the mixture's density at a point."""
    share, mean_x, mean_y, log_x, log_y, correlation = parts
    correlation = 0.9 * tf.tanh(correlation)
    u, v = (x - mean_x) * tf.exp(-log_x), (y - mean_y) * tf.exp(-log_y)
    rest = 1 - tf.square(correlation)
    exponent = -(u * u + v * v - 2 * correlation * u * v) / (2 * rest)
    each = tf.nn.log_softmax(share) + exponent - log_x - log_y - 0.5 * tf.log(rest)
    return tf.reduce_logsumexp(each, -1)


def loss(make=OwnLSTMCell):
    strokes = uniform([ROWS, STEPS + 1, STROKE], [ROWS, None, STROKE], 1)
    lengths = lengths_of(ROWS, STEPS)
    keep = tf.placeholder_with_default(0.9, [])
    mean, log_variance = encoded(strokes[:, 1:], lengths, keep)
    noise = tf.random_normal(tf.shape(mean), seed=3)
    latent = mean + tf.exp(0.5 * log_variance) * noise
    found = decoded(strokes[:, :-1], latent, keep, make)
    wanted = strokes[:, 1:]
    parts = tf.split(found[:, :, PEN:], 6, 2)
    mask = tf.sequence_mask(lengths, tf.shape(wanted)[1], tf.float32)
    offsets = density(wanted[:, :, :1], wanted[:, :, 1:2], parts) * mask
    pen = tf.nn.softmax_cross_entropy_with_logits_v2(
        labels=tf.nn.softmax(wanted[:, :, 2:]), logits=found[:, :, :PEN]
    )
    divergence = 1 + log_variance - tf.square(mean) - tf.exp(log_variance)
    return tf.reduce_mean(pen) - tf.reduce_mean(offsets) - 0.25 * tf.reduce_mean(divergence)


def normalized_loss():
    return loss(NormalizedLSTMCell)


def inference():
    """The mixtures of a drawing, of the mean of its latent vector."""
    strokes = uniform([ROWS, STEPS, STROKE], [ROWS, None, STROKE], 1)
    mean, _ = encoded(strokes, lengths_of(ROWS, STEPS), None)
    return [mean, decoded(strokes, mean, None, OwnLSTMCell)]
