"""Music (MusicVAE; Roberts et al., 2018) without a GPU.

The encoder's two directions are `CudnnCompatibleLSTMCell`s, which checkpoints of `CudnnLSTM` are
loaded into. The decoder is made of `LSTMBlockCell`s: a stack of them has a step for each bar, whose
output gives the loop over the bar's notes its first state.
"""

import tensorflow as tf
from given import uniform

NOTES, CELL, LATENT, BARS, STEPS, ROWS = 9, 8, 4, 2, 4, 2
rnn = tf.contrib.rnn


def encoded(notes):
    """Mean and logarithm of the variance, of the last states of both directions."""
    cells = [tf.contrib.cudnn_rnn.CudnnCompatibleLSTMCell(CELL) for _ in range(2)]
    _, states = tf.nn.bidirectional_dynamic_rnn(
        *cells, inputs=notes, dtype=tf.float32, time_major=True, scope="encoder"
    )
    last = tf.concat([state.h for state in states], 1)
    return [tf.layers.dense(last, LATENT, name=name) for name in ("mean", "log_variance")]


def decoded(latent, notes):
    """The scores of the notes [steps, rows, notes] of all bars, given those before."""
    with tf.variable_scope("bars"):
        conductor = rnn.MultiRNNCell([rnn.LSTMBlockCell(CELL) for _ in range(2)])
        first = tf.layers.dense(latent, CELL, tf.tanh, name="first")
        state = conductor.zero_state(ROWS, tf.float32)
    scores, cell = [], rnn.LSTMBlockCell(CELL)
    for bar, part in enumerate(tf.split(notes, BARS)):
        with tf.variable_scope("bars", reuse=bar > 0):
            given, state = conductor(first, state)
        with tf.variable_scope("notes", reuse=bar > 0):
            start = tf.layers.dense(given, 2 * CELL, tf.tanh, name="first_state")
            h, _ = tf.nn.dynamic_rnn(
                cell,
                tf.concat([part, tf.tile(given[None], [STEPS, 1, 1])], 2),
                initial_state=rnn.LSTMStateTuple(*tf.split(start, 2, 1)),
                time_major=True,
            )
            scores.append(tf.layers.dense(h, NOTES, name="scores"))
    return tf.concat(scores, 0)


def notes_of_all():
    shape = [BARS * STEPS, ROWS, NOTES]
    return uniform(shape, shape, 1)


def inference():
    notes = notes_of_all()
    mean, _ = encoded(notes)
    return [mean, tf.nn.softmax(decoded(mean, notes))]


def loss():
    notes = notes_of_all()
    mean, log_variance = encoded(notes)
    latent = mean + tf.exp(0.5 * log_variance) * tf.random_normal(tf.shape(mean), seed=3)
    before = tf.concat([tf.zeros_like(notes[:1]), notes[:-1]], 0)
    each = tf.nn.softmax_cross_entropy_with_logits_v2(
        labels=tf.nn.softmax(notes), logits=decoded(latent, before)
    )
    divergence = 1 + log_variance - tf.square(mean) - tf.exp(log_variance)
    return tf.reduce_mean(each) - 0.1 * tf.reduce_mean(divergence)
