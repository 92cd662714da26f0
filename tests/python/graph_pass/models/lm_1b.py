"""A language model whose variables are in parts (Jozefowicz et al., 2016).

Embeddings, cells with a projection, and the output layer are partitioned, as for servers of
parameters. Steps follow each other without a loop, and variables keep the last state. Training
samples the words that it compares the right one with.
"""

import tensorflow as tf
from given import numbers

WORDS, WORD, CELL, LAYERS, ROWS, STEPS, PARTS, SAMPLED = 24, 6, 10, 2, 3, 5, 2, 8


def in_parts():
    return tf.fixed_size_partitioner(PARTS)


def outputs(words, steps):
    """Outputs of all steps, and the ops that keep the last states."""
    table = tf.get_variable("words", [WORDS, WORD], partitioner=in_parts())
    xs = tf.unstack(tf.nn.embedding_lookup(table, words), steps, 1)
    updates = []
    for layer in range(LAYERS):
        cell = tf.nn.rnn_cell.LSTMCell(
            CELL, num_proj=WORD, num_unit_shards=PARTS, num_proj_shards=PARTS
        )
        with tf.variable_scope(f"layer_{layer}"):
            kept = tf.nn.rnn_cell.LSTMStateTuple(
                *(
                    tf.get_variable(name, [ROWS, size], trainable=False)
                    for name, size in (("c", CELL), ("h", WORD))
                )
            )
            state = tf.nn.rnn_cell.LSTMStateTuple(*(part.read_value() for part in kept))
            xs, state = tf.nn.static_rnn(cell, xs, state)
        updates += [tf.assign(a, b) for a, b in zip(kept, state)]
    return xs, updates


def output_layer():
    weights = tf.get_variable("softmax", [WORDS, WORD], partitioner=in_parts())
    return weights, tf.get_variable("bias", [WORDS])


def inference():
    """The next word of each row, one step: the state comes from variables and goes there."""
    words = numbers(0, WORDS, [ROWS, 1], [ROWS, 1], 1)
    (h,), updates = outputs(words, 1)
    weights, bias = output_layer()
    with tf.control_dependencies(updates):
        return [tf.nn.softmax(tf.matmul(h, tf.convert_to_tensor(weights), transpose_b=True) + bias)]


def loss():
    words = numbers(0, WORDS, [ROWS, STEPS], [ROWS, STEPS], 1)
    wanted = numbers(0, WORDS, [ROWS, STEPS], [ROWS, STEPS], 2)
    xs, _ = outputs(words, STEPS)
    weights, bias = output_layer()
    labels = tf.cast(tf.reshape(tf.transpose(wanted), [-1, 1]), tf.int64)
    sampled = tf.random.log_uniform_candidate_sampler(labels, 1, SAMPLED, True, WORDS, seed=3)
    each = tf.nn.sampled_softmax_loss(
        weights, bias, labels, tf.concat(xs, 0), SAMPLED, WORDS, sampled_values=sampled
    )
    return tf.reduce_mean(each)
