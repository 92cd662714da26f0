"""What a customer will click (DIEN; Zhou et al., 2018): two GRUs over what was clicked before.

The second one has a gate of attention: it multiplies the update gate by how much a step has to do
with the item in question.
"""

import tensorflow as tf
from given import lengths_of, numbers

ITEMS, ITEM, CELL, ROWS, STEPS = 20, 6, 6, 3, 6


class AttentionGRUCell(tf.nn.rnn_cell.RNNCell):
    """A GRU whose update gate is multiplied by a weight, the last column of the input."""

    @property
    def state_size(self):
        return CELL

    @property
    def output_size(self):
        return CELL

    def __call__(self, x, h, scope=None):
        x, weight = x[:, :-1], x[:, -1:]
        with tf.variable_scope(scope or "attention_gru", reuse=tf.AUTO_REUSE):
            gates = tf.layers.dense(tf.concat([x, h], 1), 2 * CELL, tf.sigmoid, name="gates")
            r, u = tf.split(gates, 2, 1)
            c = tf.layers.dense(tf.concat([x, r * h], 1), CELL, tf.tanh, name="candidate")
            u = (1 - weight) * u
            h = u * h + (1 - u) * c
        return h, h


def inputs():
    clicks = numbers(0, ITEMS, [ROWS, STEPS], [None, None], 1)
    return clicks, numbers(0, ITEMS, [ROWS], [None], 2), lengths_of(ROWS, STEPS)


def scores(clicks, item, lengths):
    """The score of the item, and the outputs of the first GRU."""
    table = tf.get_variable("items", [ITEMS, ITEM])
    before, now = (tf.nn.embedding_lookup(table, index) for index in (clicks, item))
    h, _ = tf.nn.dynamic_rnn(
        tf.nn.rnn_cell.GRUCell(CELL), before, lengths, dtype=tf.float32, scope="interest"
    )
    query = tf.layers.dense(now, CELL, name="query")[:, None]
    relation = tf.reduce_sum(query * h, 2)
    mask = tf.sequence_mask(lengths, tf.shape(clicks)[1], tf.float32)
    weights = tf.nn.softmax(relation - 1e9 * (1 - mask))
    _, last = tf.nn.dynamic_rnn(
        AttentionGRUCell(),
        tf.concat([h, weights[:, :, None]], 2),
        lengths,
        dtype=tf.float32,
        scope="evolution",
    )
    features = tf.concat([now, last, tf.reduce_sum(before * mask[:, :, None], 1)], 1)
    x = tf.layers.dense(features, CELL, tf.nn.sigmoid, name="hidden")
    return tf.layers.dense(x, 1, name="score")[:, 0], h, mask


def inference():
    return [tf.sigmoid(scores(*inputs())[0])]


def loss():
    clicks, item, lengths = inputs()
    score, h, mask = scores(clicks, item, lengths)
    clicked = tf.cast(item % 2, tf.float32)
    main = tf.nn.sigmoid_cross_entropy_with_logits(labels=clicked, logits=score)
    # Of each state of the first GRU: does the next click follow?
    after = tf.nn.embedding_lookup(tf.get_variable("next", [ITEMS, CELL]), clicks[:, 1:])
    follows = tf.reduce_sum(h[:, :-1] * after, 2)
    auxiliary = tf.nn.softplus(-follows) * mask[:, 1:]
    return tf.reduce_mean(main) + tf.reduce_mean(auxiliary)
