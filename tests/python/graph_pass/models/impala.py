"""A learner of an agent with a memory (IMPALA; Espeholt et al., 2018).

Convolutions see the frames of all steps at once. An LSTM takes them one after the other, without a
loop: where an episode ends, `where` takes the initial state. Targets are those of V-trace, by a
scan from the end.
"""

import tensorflow as tf
from given import numbers, uniform

STEPS, ROWS, SIDE, CHANNELS, FEATURES, CELL, ACTIONS = 5, 3, 6, 2, 8, 8, 4
MAKE = tf.nn.rnn_cell.BasicLSTMCell


def torso(frames, last_actions, rewards):
    x = tf.layers.conv2d(frames, CHANNELS, 3, padding="same", name="convolution")
    x = tf.nn.max_pool2d(tf.nn.relu(x), 3, 2, "SAME")
    x = tf.layers.dense(tf.layers.flatten(x), FEATURES, tf.nn.relu, name="features")
    return tf.concat([x, tf.tanh(rewards)[:, None], tf.one_hot(last_actions, ACTIONS)], 1)


def core(x, ends, cell):
    """[steps, rows, n]: the outputs of the cell, which starts anew where an episode has ended."""
    first = cell.zero_state(ROWS, tf.float32)
    state, outputs = first, []
    for here, end in zip(tf.unstack(x), tf.unstack(ends)):
        state = tf.nest.map_structure(
            lambda new, old, end=end: tf.where(end, new, old), first, state
        )
        output, state = cell(here, state)
        outputs.append(output)
    return tf.stack(outputs), state


def heads(steps):
    """[steps, rows, ...]: the scores of actions and the values; and the last state."""
    count = steps * ROWS
    frames = uniform([count, SIDE, SIDE, 1], [count, SIDE, SIDE, 1], 1)
    x = torso(frames, numbers(0, ACTIONS, [count], [count], 2), uniform([count], [count], 3))
    ends = tf.equal(numbers(0, 3, [steps, ROWS], [steps, ROWS], 4), 0)
    h, state = core(tf.reshape(x, [steps, ROWS, -1]), ends, MAKE(CELL))
    return (
        tf.layers.dense(h, ACTIONS, name="policy"),
        tf.layers.dense(h, 1, name="value")[:, :, 0],
        state,
    )


def inference():
    """What an actor asks for in each step of the game."""
    scores, values, state = heads(1)
    return [scores, values, *state]


def targets(values, rewards, ratios):
    """V-trace: sums of the errors from each step on, weighted by clipped ratios of policies."""
    clipped = tf.minimum(1.0, ratios)
    after = tf.concat([values[1:], values[-1:]], 0)
    errors = clipped * (rewards + 0.9 * after - values)
    sums = tf.scan(
        lambda total, both: both[0] + 0.9 * both[1] * total,
        (errors, clipped),
        initializer=tf.zeros_like(values[0]),
        reverse=True,
        back_prop=False,
    )
    return tf.stop_gradient(sums + values)


def loss():
    scores, values, _ = heads(STEPS)
    shape = [STEPS, ROWS]
    actions = numbers(0, ACTIONS, shape, shape, 5)
    rewards, others = uniform(shape, shape, 6), uniform(shape, shape, 7)
    surprise = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=actions, logits=scores)
    wanted = targets(values, rewards, tf.exp(-surprise - others))
    gains = tf.stop_gradient(wanted - values)
    logs = tf.nn.log_softmax(scores)
    return tf.reduce_sum(
        gains * surprise + 0.5 * tf.square(wanted - values)
    ) + 0.01 * tf.reduce_sum(tf.exp(logs) * logs)


def block_loss():
    global MAKE
    MAKE = tf.contrib.rnn.LSTMBlockCell
    try:
        return loss()
    finally:
        MAKE = tf.nn.rnn_cell.BasicLSTMCell
