"""Text in pictures (CRNN; Shi et al., 2015): convolutions, LSTMs in two directions, CTC."""

import numpy as np
import tensorflow as tf
from given import given, uniform

ROWS, HEIGHT, WIDTH, CHANNELS, CELL, LAYERS, LETTERS = 2, 8, 16, 4, 6, 2, 6


def scores():
    """[columns, rows, letters and none] of a picture: each column is a step."""
    x = uniform([ROWS, HEIGHT, WIDTH, 1], [None, HEIGHT, WIDTH, 1], 1)
    for k, stride in enumerate((2, (2, 1))):
        x = tf.layers.conv2d(x, CHANNELS, 3, padding="same", activation=tf.nn.relu, name=f"c{k}")
        x = tf.nn.max_pool2d(x, stride, stride, "SAME")
    x = tf.transpose(x, [0, 2, 1, 3])
    columns = [x.shape[1].value, x.shape[2].value * CHANNELS]
    x = tf.reshape(x, [-1, *columns])
    forward, backward = (
        [tf.nn.rnn_cell.LSTMCell(CELL, forget_bias=1.0) for _ in range(LAYERS)] for _ in range(2)
    )
    h, _, _ = tf.contrib.rnn.stack_bidirectional_dynamic_rnn(forward, backward, x, dtype=tf.float32)
    return tf.transpose(tf.layers.dense(h, LETTERS + 1, name="letters"), [1, 0, 2]), columns[0]


def lengths_of_all(steps):
    return given(np.full([ROWS], steps, "i"), [None])


def inference():
    """The letters that are likeliest in each column, without repetitions."""
    table, steps = scores()
    (letters,), logs = tf.nn.ctc_greedy_decoder(table, lengths_of_all(steps))
    return [tf.nn.softmax(table), tf.sparse.to_dense(letters), logs]


def loss():
    table, steps = scores()
    places = np.array([[row, k] for row in range(ROWS) for k in range(3)], np.int64)
    letters = given(np.arange(len(places), dtype=np.int32) % LETTERS, [None])
    wanted = tf.SparseTensor(places, letters, [ROWS, 3])
    return tf.reduce_mean(tf.nn.ctc_loss(wanted, table, lengths_of_all(steps)))
