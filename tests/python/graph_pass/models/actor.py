"""An agent with a memory (A2C as in OpenAI's baselines): an LSTM that is written out.

It has a product for x and another for h, gates in the order i, f, o, u, and a state that an
episode's end makes zero. Steps follow each other without a loop.
"""

import tensorflow as tf
from given import numbers, uniform

ROWS, STEPS, OBSERVATION, CELL, ACTIONS = 4, 5, 10, 8, 3


def lstm(xs, ends, state):
    """The outputs of all steps, and the last state: c and h side by side."""
    w_x = tf.get_variable("w_x", [xs[0].shape[1], 4 * CELL])
    w_h = tf.get_variable("w_h", [CELL, 4 * CELL])
    bias = tf.get_variable("bias", [4 * CELL])
    c, h = tf.split(state, 2, 1)
    outputs = []
    for x, end in zip(xs, ends):
        c, h = (part * (1 - end) for part in (c, h))
        i, f, o, u = tf.split(tf.matmul(x, w_x) + tf.matmul(h, w_h) + bias, 4, 1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(u)
        h = tf.sigmoid(o) * tf.tanh(c)
        outputs.append(h)
    return outputs, tf.concat([c, h], 1)


def by_step(x, steps):
    """[rows * steps, n] as a list of [rows, n]."""
    return tf.unstack(tf.reshape(x, [ROWS, steps, -1]), axis=1)


def heads(steps):
    """Scores of actions, values and the next state, of rows * steps observations."""
    observations = uniform([ROWS * steps, OBSERVATION], [ROWS * steps, OBSERVATION], 1)
    ends = tf.cast(numbers(0, 2, [ROWS * steps], [ROWS * steps], 2), tf.float32)
    state = uniform([ROWS, 2 * CELL], [ROWS, 2 * CELL], 3)
    x = tf.layers.dense(observations, CELL, tf.nn.relu, name="before")
    xs = [tf.reshape(part, [ROWS, CELL]) for part in by_step(x, steps)]
    outputs, state = lstm(xs, by_step(ends, steps), state)
    h = tf.reshape(tf.stack(outputs, 1), [-1, CELL])
    return tf.layers.dense(h, ACTIONS, name="policy"), tf.layers.dense(h, 1, name="value"), state


def inference():
    """What an agent asks for in each step of the game."""
    return list(heads(1))


def loss():
    scores, values, _ = heads(STEPS)
    count = ROWS * STEPS
    actions = numbers(0, ACTIONS, [count], [count], 4)
    gains, returns = uniform([count], [count], 5), uniform([count, 1], [count, 1], 6)
    surprise = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=actions, logits=scores)
    logs = tf.nn.log_softmax(scores)
    entropy = -tf.reduce_sum(tf.exp(logs) * logs, 1)
    return (
        tf.reduce_mean(gains * surprise)
        + 0.5 * tf.reduce_mean(tf.square(values - returns))
        - 0.01 * tf.reduce_mean(entropy)
    )
