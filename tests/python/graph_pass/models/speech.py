"""Speech recognition (DeepSpeech; Hannun et al., 2014): dense layers, LSTM, CTC.

Once it had two directions of `BasicLSTMCell` in a loop. Later it got one direction of
`LSTMBlockFusedCell`, which reads sound piece by piece: variables keep the state between the pieces.
"""

import numpy as np
import tensorflow as tf
from given import given, lengths_of, uniform

ROWS, STEPS, SOUND, DENSE, CELL, LETTERS = 2, 8, 10, 8, 7, 5
MOST = 20.0  # Activations are cut off here.


def dense(x, units, name):
    return tf.minimum(tf.layers.dense(x, units, tf.nn.relu, name=name), MOST)


def before(sound):
    """[rows, steps, sound] to [steps, rows, dense]."""
    x = tf.reshape(tf.transpose(sound, [1, 0, 2]), [-1, SOUND])
    for k in range(3):
        x = dense(x, DENSE, f"before_{k}")
    return tf.reshape(x, [-1, tf.shape(sound)[0], DENSE])


def after(h, units):
    """[steps, rows, units] to the scores of letters and of none."""
    x = dense(tf.reshape(h, [-1, units]), DENSE, "after")
    return tf.reshape(
        tf.layers.dense(x, LETTERS + 1, name="letters"), [-1, tf.shape(h)[1], LETTERS + 1]
    )


def old(sound, lengths):
    """Two directions, in loops."""
    cells = [tf.nn.rnn_cell.BasicLSTMCell(CELL) for _ in range(2)]
    outputs, _ = tf.nn.bidirectional_dynamic_rnn(
        *cells, inputs=before(sound), sequence_length=lengths, dtype=tf.float32, time_major=True
    )
    return after(tf.concat(outputs, 2), 2 * CELL)


def new(sound, lengths, state=None):
    """One direction as one op; the scores, and the last state."""
    cell = tf.contrib.rnn.LSTMBlockFusedCell(CELL, forget_bias=0)
    h, state = cell(before(sound), state, tf.float32, sequence_length=lengths)
    return after(h, CELL), state


def inputs():
    return uniform([ROWS, STEPS, SOUND], [None, None, SOUND], 1), lengths_of(ROWS, STEPS)


def ctc(scores, lengths):
    """Sounds of a letter or two in each row."""
    places = [[row, k] for row in range(ROWS) for k in range(1 + row % 2 * (STEPS > 4))]
    letters = np.arange(len(places), dtype=np.int32) % LETTERS
    wanted = tf.SparseTensor(np.array(places, np.int64), given(letters, [None]), [ROWS, 2])
    return tf.reduce_mean(
        tf.nn.ctc_loss(wanted, scores, lengths, ignore_longer_outputs_than_inputs=True)
    )


def old_loss():
    sound, lengths = inputs()
    return ctc(old(sound, lengths), lengths)


def new_loss():
    sound, lengths = inputs()
    return ctc(new(sound, lengths)[0], lengths)


def old_inference():
    return [tf.nn.softmax(old(*inputs()))]


def plain_inference():
    """One direction by `BasicLSTMCell`, as in graphs for devices without the fused cell."""
    sound, lengths = inputs()
    cell = tf.nn.rnn_cell.BasicLSTMCell(CELL)
    h, _ = tf.nn.dynamic_rnn(cell, before(sound), lengths, dtype=tf.float32, time_major=True)
    return [tf.nn.softmax(after(h, CELL))]


def new_inference():
    """A piece of sound, one row: the state before is read from variables, and kept there."""
    sound = uniform([1, STEPS, SOUND], [1, STEPS, SOUND], 1)
    kept = [tf.get_variable(name, [1, CELL], trainable=False) for name in ("c", "h")]
    scores, state = new(sound, given(np.array([STEPS], "i"), [None]), tuple(kept))
    with tf.control_dependencies([tf.assign(a, b) for a, b in zip(kept, state)]):
        return [tf.nn.softmax(scores), *map(tf.identity, state)]
