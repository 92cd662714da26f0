"""An encoder and a decoder of frames with zoneout (Krueger et al., 2016), as in Tacotron 2.

A wrapper around LSTMCell mixes the new state with the old one. The decoder computes each frame from
the one before, in a loop of its own: two cells, and attention that looks at the sum of its weights
so far.
"""

import tensorflow as tf
from given import lengths_of, numbers, uniform

SYMBOLS, SYMBOL, CELL, FRAME, FRAMES = 25, 6, 8, 4, 7
ROWS, STEPS = 3, 5
State = tf.nn.rnn_cell.LSTMStateTuple


class ZoneoutLSTMCell(tf.nn.rnn_cell.RNNCell):
    """LSTMCell of which a share of every element of the state stays as it was.

    In training, a share of the elements stays.
    """

    def __init__(self, units, c_share, h_share, is_training, **options):
        super().__init__()
        self._cell = tf.nn.rnn_cell.LSTMCell(units, **options)
        self._shares = State(c_share, h_share)
        self._is_training = is_training

    @property
    def state_size(self):
        return self._cell.state_size

    @property
    def output_size(self):
        return self._cell.output_size

    def __call__(self, inputs, state, scope=None):
        output, after = self._cell(inputs, state, scope)
        if self._is_training:
            mixed = [
                (1 - share) * tf.nn.dropout(new - old, rate=share, seed=k + 1) + old
                for k, (share, new, old) in enumerate(zip(self._shares, after, state))
            ]
        else:
            mixed = [
                (1 - share) * new + share * old
                for share, new, old in zip(self._shares, after, state)
            ]
        return output, State(*mixed)


def encoder(symbols, lengths, is_training):
    table = tf.get_variable("symbols", [SYMBOLS, SYMBOL])
    x = tf.nn.embedding_lookup(table, symbols)
    x = tf.layers.conv1d(x, SYMBOL, 3, padding="same", activation=tf.nn.relu, name="convolution")
    cells = [
        ZoneoutLSTMCell(CELL, 0.1, 0.1, is_training, name=name) for name in ("forward", "backward")
    ]
    outputs, _ = tf.nn.bidirectional_dynamic_rnn(
        *cells, inputs=x, sequence_length=lengths, dtype=tf.float32, scope="encoder"
    )
    return tf.concat(outputs, -1)


def attend(query, keys, total, mask):
    """Weights [rows, symbols] by the query and by the sum of the weights so far."""
    places = tf.layers.conv1d(total[:, :, None], 3, 5, padding="same", name="places")
    places = tf.layers.dense(places, CELL, use_bias=False, name="of_places")
    query = tf.layers.dense(query, CELL, use_bias=False, name="of_query")[:, None]
    energy = tf.layers.dense(tf.tanh(keys + query + places), 1, use_bias=False, name="energy")[
        ..., 0
    ]
    return tf.nn.softmax(energy + mask)


def decoder(memory, lengths, given=None):
    """Frames [rows, frames, frame], and the weights of the attention of each.

    In training, those that are given take the place of the frames before.
    """
    rows, symbols = tf.shape(memory)[0], tf.shape(memory)[1]
    keys = tf.layers.dense(memory, CELL, use_bias=False, name="keys")
    mask = -1e9 * (1 - tf.sequence_mask(tf.maximum(lengths, 1), symbols, tf.float32))
    is_training = given is not None
    cells = [ZoneoutLSTMCell(CELL, 0.1, 0.2, is_training, name=f"decoder_{k}") for k in range(2)]
    stack = tf.nn.rnn_cell.MultiRNNCell(cells)

    def body(step, frame, context, total, state, frames, weights_of_frames):
        x = tf.layers.dense(frame, SYMBOL, tf.nn.relu, name="before")
        y, state = stack(tf.concat([x, context], -1), state)
        weights = attend(y, keys, total, mask)
        context = tf.reduce_sum(weights[:, :, None] * memory, 1)
        frame = tf.layers.dense(tf.concat([y, context], -1), FRAME, name="frame")
        frames, weights_of_frames = (
            array.write(step, value)
            for array, value in ((frames, frame), (weights_of_frames, weights))
        )
        frame = given[:, step] if is_training else frame
        return step + 1, frame, context, total + weights, state, frames, weights_of_frames

    arrays = [tf.TensorArray(tf.float32, FRAMES, element_shape=[None, None]) for _ in range(2)]
    start = [tf.zeros([rows, FRAME]), tf.zeros([rows, 2 * CELL]), tf.zeros([rows, symbols])]
    *_, frames, weights = tf.while_loop(
        lambda step, *_: step < FRAMES,
        body,
        [tf.constant(0), *start, stack.zero_state(rows, tf.float32), *arrays],
    )
    return [tf.transpose(array.stack(), [1, 0, 2]) for array in (frames, weights)]


def inputs():
    symbols = numbers(0, SYMBOLS, [ROWS, STEPS], [None, None], 1, "symbols_of_rows")
    return symbols, lengths_of(ROWS, STEPS)


def inference():
    symbols, lengths = inputs()
    memory = encoder(symbols, lengths, False)
    return [memory, *decoder(memory, lengths)]


def loss():
    symbols, lengths = inputs()
    targets = uniform([ROWS, FRAMES, FRAME], [None, FRAMES, FRAME], 2)
    frames, _ = decoder(encoder(symbols, lengths, True), lengths, targets)
    return tf.reduce_mean(tf.squared_difference(frames, targets))
