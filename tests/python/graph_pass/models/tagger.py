"""A tagger of words (Lample et al., 2016): LSTM cells over characters and words, and a CRF.

The last states of both directions over the characters of a word are added to its embedding. The
rows of the first network are words, many of which are padding without characters.
"""

import tensorflow as tf
from given import lengths_of, numbers
from tensorflow.contrib import crf

WORDS, CHARACTERS, TAGS = 40, 20, 5
WORD, CHARACTER, CHARACTER_CELL, CELL = 8, 4, 5, 7
ROWS, STEPS, MOST_CHARACTERS = 3, 4, 6


def both_directions(units, x, lengths, scope):
    forward, backward = (tf.nn.rnn_cell.LSTMCell(units) for _ in range(2))
    return tf.nn.bidirectional_dynamic_rnn(
        forward, backward, x, sequence_length=lengths, dtype=tf.float32, scope=scope
    )


def words_from_characters(characters, lengths):
    """[rows, words, characters] and the lengths of words [rows, words]: [rows, words, 2 * cell]."""
    table = tf.get_variable("characters", [CHARACTERS, CHARACTER])
    shape = tf.shape(characters)
    x = tf.nn.embedding_lookup(table, tf.reshape(characters, [shape[0] * shape[1], shape[2]]))
    _, states = both_directions(CHARACTER_CELL, x, tf.reshape(lengths, [-1]), "characters")
    last = tf.concat([state.h for state in states], -1)
    return tf.reshape(last, [shape[0], shape[1], 2 * CHARACTER_CELL])


def scores(words, characters, word_lengths, lengths):
    """The scores of tags [rows, words, tags]."""
    x = tf.nn.embedding_lookup(tf.get_variable("words", [WORDS, WORD]), words)
    x = tf.concat([x, words_from_characters(characters, word_lengths)], -1)
    x = tf.nn.dropout(x, rate=tf.placeholder_with_default(0.0, [], "rate"), seed=7)
    outputs, _ = both_directions(CELL, x, lengths, "words")
    return tf.layers.dense(tf.concat(outputs, -1), TAGS, name="tags")


def inputs():
    shape, known = [ROWS, STEPS], [None, None]
    words = numbers(0, WORDS, shape, known, 1, "words_of_rows")
    characters = numbers(
        *(0, CHARACTERS, [*shape, MOST_CHARACTERS], [None, *known], 2, "characters_of_words")
    )
    word_lengths = numbers(1, MOST_CHARACTERS + 1, shape, known, 3, "lengths_of_words")
    return words, characters, word_lengths, lengths_of(ROWS, STEPS)


def inference():
    """The scores, the best sequences of tags, and their scores."""
    given = inputs()
    table = scores(*given)
    transitions = tf.get_variable("transitions", [TAGS, TAGS])
    tags, best = crf.crf_decode(table, transitions, given[-1])
    return [table, tags, best]


def loss():
    """The negative log-likelihood of the tags."""
    given = inputs()
    table = scores(*given)
    tags = numbers(0, TAGS, [ROWS, STEPS], [None, None], 4)
    likelihood, _ = crf.crf_log_likelihood(
        table, tags, given[-1], tf.get_variable("transitions", [TAGS, TAGS])
    )
    return -tf.reduce_mean(likelihood)
