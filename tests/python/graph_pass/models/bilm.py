"""A bidirectional language model, as that of ELMo (Peters et al., 2018).

Each direction is a stack of cells with projections and clipping, each of them in a loop of its
own. From the second layer on, a layer's input is added to its output. The backward direction reads
every row reversed up to its length. Variables keep the last states of the rows for the next run.
"""

import tensorflow as tf
from given import lengths_of, numbers

WORDS, WORD, CELL, LAYERS, MOST_ROWS = 30, 6, 9, 2, 4
ROWS, STEPS = 3, 5


def cell():
    return tf.nn.rnn_cell.LSTMCell(CELL, num_proj=WORD, cell_clip=3.0, proj_clip=3.0)


def kept_state(rows):
    """Variables with a state for each row, and what the first rows have."""
    kept = [
        tf.get_variable(name, [MOST_ROWS, size], trainable=False)
        for name, size in (("c", CELL), ("h", WORD))
    ]
    return kept, tf.nn.rnn_cell.LSTMStateTuple(*(part[:rows] for part in kept))


def direction(name, x, lengths, backward):
    """The outputs of all layers of a direction, and the ops that keep the last states."""
    turned = (lambda y: tf.reverse_sequence(y, lengths, 1, 0)) if backward else tf.identity
    y, outputs, updates = turned(x), [], []
    for layer in range(LAYERS):
        with tf.variable_scope(f"{name}_{layer}"):
            rows = tf.shape(x)[0]
            kept, state = kept_state(rows)
            after, state = tf.nn.dynamic_rnn(cell(), y, lengths, initial_state=state)
            y = after + y if layer else after
            outputs.append(turned(y))
            with tf.control_dependencies([y]):
                updates += [
                    tf.assign(old, tf.concat([new, old[rows:]], 0)) for old, new in zip(kept, state)
                ]
    return outputs, updates


def network(words, lengths):
    """The outputs of both directions, the mixture of layers, and the ops that keep the states."""
    table = tf.get_variable("words", [WORDS, WORD])
    x = tf.nn.embedding_lookup(table, words)
    forward, updates = direction("forward", x, lengths, backward=False)
    backward, more_updates = direction("backward", x, lengths, backward=True)
    layers = [tf.concat([x, x], -1)]
    layers += [tf.concat(both, -1) for both in zip(forward, backward)]
    shares = tf.nn.softmax(tf.get_variable("shares", [LAYERS + 1]))
    mixture = tf.add_n([layer * shares[k] for k, layer in enumerate(layers)])
    return forward[-1], backward[-1], mixture, updates + more_updates


def inputs():
    words = numbers(0, WORDS, [ROWS, STEPS], [None, None], 1, "words_of_rows")
    return words, lengths_of(ROWS, STEPS)


def inference():
    """What other programs take from the model: the mixture of its layers. No state is kept."""
    _, _, mixture, _ = network(*inputs())
    return [mixture]


def keeps_state():
    """The mixture of the layers, and the states that are kept."""
    _, _, mixture, updates = network(*inputs())
    return [mixture, *updates]


def loss():
    """Each direction predicts the next word that it will read; both have the same output layer."""
    words, lengths = inputs()
    forward, backward, mixture, _ = network(words, lengths)
    weights, bias = tf.get_variable("softmax", [WORDS, WORD]), tf.get_variable("bias", [WORDS])
    losses = []
    for outputs, wanted in ((forward[:, :-1], words[:, 1:]), (backward[:, 1:], words[:, :-1])):
        logits = tf.tensordot(outputs, weights, [[2], [1]]) + bias
        each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=wanted, logits=logits)
        mask = tf.sequence_mask(lengths - 1, tf.shape(each)[1], tf.float32)
        losses.append(tf.reduce_sum(each * mask))
    return tf.add_n(losses) + tf.nn.l2_loss(mixture)
