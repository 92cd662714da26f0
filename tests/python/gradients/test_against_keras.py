"""BlockGRU and BlockLSTM[V2] against the GRU and LSTM layers of Keras, on rows padded to the right.

Same weights, same outputs, same gradients. Keras repeats the last output in padding, where BlockGRU
has zeros, so outputs count only where the mask says so.
"""

import numpy as np
import pytest
import tensorflow as tf

from blockcell.op_table import BLOCK_GRU, BLOCK_LSTM, BLOCK_LSTM_V2
from helpers import checks, kernels

TF1 = tf.__version__.startswith("1.")
BATCH, TIME, INPUT, CELL = 5, 6, 3, 4
LENGTHS = np.array([6, 3, 1, 0, 4], np.int64)
LIMIT = 1e-5


def random(*shape, seed=0):
    return np.random.RandomState([seed, *shape]).standard_normal(shape).astype("f")


def values_of(gates, states, bias):
    """Random values of a layer's inputs and weights, by name; x is batch-major, as in Keras."""
    values = {
        "x": random(BATCH, TIME, INPUT),
        "kernel": random(INPUT, gates * CELL),
        "recurrent": random(CELL, gates * CELL) / 2,
        "bias": random(*bias),
    }
    return dict(values, **{name: random(BATCH, CELL, seed=7) for name in states})


def loss_of(outputs, *states):
    """Involves the outputs that are not padding, and the last states, each in its own way."""
    mask = tf.sequence_mask(LENGTHS, TIME)
    weights = random(BATCH, TIME, CELL, seed=1)
    kept = tf.where(tf.tile(mask[:, :, tf.newaxis], [1, 1, CELL]), outputs * weights, 0 * outputs)
    ends = [tf.reduce_sum(s * random(BATCH, CELL, seed=2 + k)) for k, s in enumerate(states)]
    return kept, tf.reduce_sum(kept) + tf.add_n(ends)


def run(call, values):
    """Outputs and gradients with respect to all values of `call`, a function of tensors by name.

    `call` returns the outputs, batch-major, and a list of last states.
    """
    if TF1:
        with tf.Graph().as_default() as graph, kernels.labelled():
            tensors = {name: tf.constant(value) for name, value in values.items()}
            results = _results(call, tensors, tf.gradients)
            with tf.compat.v1.Session(graph=graph) as session:
                session.run(tf.compat.v1.global_variables_initializer())
                return session.run(results)

    def function(tensors):
        with tf.GradientTape() as tape, kernels.labelled():
            tape.watch(tensors)
            return _results(call, tensors, tape.gradient)

    # Labels need a graph; a layer cannot be made in a function.
    function = function if hasattr(call, "layer") else tf.function(function, autograph=False)
    results = function({name: tf.constant(value) for name, value in values.items()})
    return {name: value.numpy() for name, value in results.items()}


def _results(call, tensors, gradient):
    outputs, states = call(tensors)
    kept, loss = loss_of(outputs, *states)
    names = list(tensors)
    gradients = gradient(loss, [tensors[name] for name in names])
    results = {"gradient of " + name: value for name, value in zip(names, gradients)}
    results.update({f"state {k}": state for k, state in enumerate(states)})
    return dict(results, outputs=kept)


# Keras.


def compute_with(layer, tensors):
    """Lets a layer use tensors instead of its variables, so that they can be differentiated."""
    cell = layer if hasattr(layer, "kernel") else layer.cell
    names = {"kernel": "kernel", "recurrent": "recurrent_kernel", "bias": "bias"}
    for name, attribute in names.items():
        assert tuple(getattr(cell, attribute).shape) == tuple(tensors[name].shape), name
        object.__setattr__(cell, attribute, tensors[name])


def keras(make, states):
    """A function for `run` that applies a layer made by `make`."""

    def call(tensors):
        layer = make(CELL, return_sequences=True, return_state=True, recurrent_activation="sigmoid")
        layer.build((BATCH, TIME, INPUT))
        compute_with(layer, tensors)
        mask = tf.sequence_mask(LENGTHS, TIME)
        initial = [tensors[name] for name in states]
        outputs, *last = layer(tensors["x"], mask=mask, initial_state=initial)
        return outputs, last

    call.layer = make
    return call


# Ours.


def time_major(tensor):
    return tf.transpose(tensor, [1, 0, 2])


def block_gru(reset_after):
    def call(tensors):
        of_x, of_state = (tf.split(tensors[name], 3, axis=1) for name in ("kernel", "recurrent"))
        biases = (
            tensors["bias"] if reset_after else tf.stack([tensors["bias"], 0 * tensors["bias"]])
        )
        (z, r, h), (z_state, r_state, h_state) = (tf.split(biases[k], 3) for k in (0, 1))
        outputs = kernels.call(
            BLOCK_GRU,
            {
                "sequence_length": tf.constant(LENGTHS),
                "x": time_major(tensors["x"]),
                "h_prev": tensors["h_prev"],
                "w_ru": tf.concat(
                    [tf.concat([w[1], w[0]], axis=1) for w in (of_x, of_state)], axis=0
                ),
                "w_c": tf.concat([of_x[2], of_state[2]], axis=0),
                "b_ru": tf.concat([r + r_state, z + z_state], axis=0),
                "b_c": h,
                "b_hc": h_state,
            },
            reset_after=reset_after,
        )
        return time_major(outputs["h"]), [outputs["h_last"]]

    return call


def block_lstm(op):
    """Per-row lengths from an op that has none, as docs/ops.md says."""

    def call(tensors):
        w = tf.concat([tensors["kernel"], tensors["recurrent"]], axis=0)
        b, options = tensors["bias"], {}
        if op == BLOCK_LSTM:  # Keras's columns are those of V2.
            w, b = (tf.gather(value, _icfo(), axis=-1) for value in (w, b))
            options["forget_bias"] = 0.0
        unused = tf.zeros([CELL])
        outputs = kernels.call(
            op,
            {
                "seq_len_max": tf.constant(LENGTHS.max()),
                "x": time_major(tensors["x"]),
                "cs_prev": tensors["cs_prev"],
                "h_prev": tensors["h_prev"],
                "w": w,
                "wci": unused,
                "wcf": unused,
                "wco": unused,
                "b": b,
            },
            cell_clip=0.0,
            **options,
        )
        mask = tf.sequence_mask(LENGTHS, TIME)[:, :, tf.newaxis]
        h = time_major(outputs["h"])
        h_kept = tf.where(tf.tile(mask, [1, 1, CELL]), h, tf.zeros_like(h))
        last = [_at_the_end(tensors[name + "_prev"], outputs[name]) for name in ("h", "cs")]
        return h_kept, last

    return call


def _icfo():
    i, f, c, o = np.split(np.arange(4 * CELL), 4)
    return np.concatenate([i, c, f, o])


def _at_the_end(first, steps):
    """The state after each row's last step, which is the first one where there is no step."""
    states = tf.concat([first[tf.newaxis], steps], axis=0)
    return tf.gather_nd(states, np.stack([LENGTHS, np.arange(BATCH)], axis=1))


@pytest.mark.parametrize("reset_after", [False, True])
def test_gru(reset_after):
    bias = (2, 3 * CELL) if reset_after else (3 * CELL,)
    values = values_of(3, ["h_prev"], bias)

    def make(*sizes, **options):
        return tf.keras.layers.GRU(*sizes, reset_after=reset_after, **options)

    want = run(keras(make, ["h_prev"]), values)
    got = run(block_gru(reset_after), values)
    assert all(np.abs(value).max() > 0.1 for value in want.values())
    checks.assert_close(got, want, LIMIT)
    # The row without steps hands its state on.
    np.testing.assert_array_equal(got["state 0"][3], values["h_prev"][3])


@pytest.mark.parametrize("op", [BLOCK_LSTM, BLOCK_LSTM_V2])
def test_lstm(op):
    values = values_of(4, ["h_prev", "cs_prev"], (4 * CELL,))
    want = run(keras(tf.keras.layers.LSTM, ["h_prev", "cs_prev"]), values)
    got = run(block_lstm(op), values)
    checks.assert_close(got, want, LIMIT)
    np.testing.assert_array_equal(got["state 1"][3], values["cs_prev"][3])
