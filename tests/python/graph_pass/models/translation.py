"""Translation (GNMT; Wu et al., 2016): stacks of LSTMs, residual sums, attention, beam search.

The encoder's first layer reads in both directions. The decoder asks its attention in every step.
Beam search keeps the best few sentences of a row, which are rows of their own in the cells.
"""

import tensorflow as tf
from given import lengths_of, numbers

WORDS, WORD, CELL, LAYERS, ROWS, STEPS, BEAM, MOST = 20, 8, 8, 2, 2, 5, 3, 6
START, END = 1, 2
seq2seq = tf.contrib.seq2seq
Basic = tf.nn.rnn_cell.BasicLSTMCell


def stack(layers, first_residual):
    cells = [Basic(CELL) for _ in range(layers)]
    return tf.nn.rnn_cell.MultiRNNCell(
        [
            tf.nn.rnn_cell.ResidualWrapper(cell) if k >= first_residual else cell
            for k, cell in enumerate(cells)
        ]
    )


def encoded(table, words, lengths):
    """What the layers' outputs are in the end; and the last states of the upper layers."""
    x = tf.nn.embedding_lookup(table, words)
    options = {"sequence_length": lengths, "dtype": tf.float32}
    both, states = tf.nn.bidirectional_dynamic_rnn(Basic(CELL), Basic(CELL), x, **options)
    h, upper = tf.nn.dynamic_rnn(stack(LAYERS - 1, 1), tf.concat(both, 2), **options)
    return h, (states[1], *upper)


def decoder_cell(memory, lengths):
    attention = seq2seq.BahdanauAttention(CELL, memory, lengths, normalize=True)
    return seq2seq.AttentionWrapper(stack(LAYERS, 1), attention, CELL)


def output_layer():
    return tf.layers.Dense(WORDS, use_bias=False, name="words_of_outputs")


def beam_search(cell, state, table):
    """The words of the best sentences [rows, BEAM, MOST] and their logarithms [rows, BEAM]."""
    layer = output_layer()

    def pick(tensor, chosen):
        """Rows of a tensor [rows * BEAM, ...] by their place in the beam."""
        first = tf.range(ROWS)[:, None] * BEAM
        return tf.gather(tensor, tf.reshape(chosen + first, [-1]))

    def body(step, words, logs, sentences, *parts):
        state_now = tf.nest.pack_sequence_as(state, parts)
        output, after = cell(tf.nn.embedding_lookup(table, tf.reshape(words, [-1])), state_now)
        each = tf.nn.log_softmax(tf.reshape(layer(output), [ROWS, BEAM, WORDS]))
        only_end = tf.one_hot([END], WORDS, 0.0, -1e9)[:, None]
        each = tf.where(
            tf.tile(tf.equal(words, END)[:, :, None], [1, 1, WORDS]),
            tf.tile(only_end, [ROWS, BEAM, 1]),
            each,
        )
        total = tf.reshape(logs[:, :, None] + each, [ROWS, BEAM * WORDS])
        logs, best = tf.nn.top_k(total, BEAM)
        chosen, words = best // WORDS, best % WORDS
        sentences = tf.concat([sentences[:, 1:], tf.reshape(words, [1, -1])[0][:, None]], 1)
        sentences = tf.concat([pick(sentences[:, :-1], chosen), sentences[:, -1:]], 1)
        parts = [
            pick(part, chosen) if part.shape.ndims else part for part in tf.nest.flatten(after)
        ]
        return (step + 1, words, logs, sentences, *parts)

    logs = tf.constant([[0.0] + [-1e9] * (BEAM - 1)] * ROWS)
    _, _, logs, sentences, *_ = tf.while_loop(
        lambda step, words, *_: (step < MOST) & tf.reduce_any(tf.not_equal(words, END)),
        body,
        [
            tf.constant(0),
            tf.fill([ROWS, BEAM], START),
            logs,
            tf.fill([ROWS * BEAM, MOST], END),
            *tf.nest.flatten(state),
        ],
    )
    return [tf.reshape(sentences, [ROWS, BEAM, MOST]), logs]


def network():
    """The embeddings, the memory of the attention, its lengths, and the last states."""
    table = tf.get_variable("words", [WORDS, WORD])
    lengths = lengths_of(ROWS, STEPS)
    words = numbers(3, WORDS, [ROWS, STEPS], [ROWS, None], 1)
    return (table, *encoded(table, words, lengths), lengths)


def inference():
    table, memory, states, lengths = network()
    repeated = [seq2seq.tile_batch(part, BEAM) for part in (memory, lengths, states)]
    with tf.variable_scope("decoder"):
        cell = decoder_cell(*repeated[:2])
        state = cell.zero_state(ROWS * BEAM, tf.float32).clone(cell_state=repeated[2])
        return beam_search(cell, state, table)


def loss():
    table, memory, states, lengths = network()
    words = numbers(3, WORDS, [ROWS, STEPS], [ROWS, None], 2)
    with tf.variable_scope("decoder"):
        cell = decoder_cell(memory, lengths)
        state = cell.zero_state(ROWS, tf.float32).clone(cell_state=states)
        helper = seq2seq.TrainingHelper(tf.nn.embedding_lookup(table, words), lengths)
        decoder = seq2seq.BasicDecoder(cell, helper, state, output_layer())
        outputs, _, _ = seq2seq.dynamic_decode(decoder, swap_memory=True)
    scores = outputs.rnn_output
    each = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=words[:, : tf.shape(scores)[1]], logits=scores
    )
    mask = tf.sequence_mask(lengths, tf.shape(scores)[1], tf.float32)
    return tf.reduce_sum(each * mask)
