"""`blockcell.block_gru` and its gradient, and weights in Keras's layout."""

import inspect

import numpy as np
import pytest
import tensorflow as tf

import blockcell
from blockcell.op_table import BLOCK_GRU, BLOCK_GRU_GRAD
from blockcell_tools.reference import inputs as references

TF1 = tf.__version__.startswith("1.")
TIME, BATCH, INPUT, CELL = 5, 3, 4, 7
LIMIT = 4e-6


def evaluate(build, **arrays):
    """What `build` makes of tensors by name, in a graph of its own; arrays in its structure."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        feeds = {name: tf.compat.v1.placeholder(value.dtype) for name, value in arrays.items()}
        fetches = build(**feeds)
        session.run(tf.compat.v1.global_variables_initializer())
        return session.run(fetches, {feeds[name]: value for name, value in arrays.items()})


def assert_close(got, want):
    assert references.scaled_error(got, want) <= LIMIT


@pytest.mark.parametrize("reset_after", [False, True])
def test_block_gru(reset_after):
    sizes = (BATCH, INPUT, CELL, TIME)
    inputs = references.inputs_of(BLOCK_GRU, *sizes, reset_after=reset_after)
    got = evaluate(lambda **named: blockcell.block_gru(**named, reset_after=reset_after), **inputs)
    want = references.expected(BLOCK_GRU, inputs, reset_after=reset_after)
    for name in want:
        assert_close(getattr(got, name), want[name])


@pytest.mark.parametrize("reset_after", [False, True])
def test_block_gru_without_its_optional_arguments(reset_after):
    inputs = references.inputs_of(
        BLOCK_GRU, BATCH, INPUT, CELL, TIME, length=TIME, reset_after=reset_after
    )
    for name in ("h_prev", "b_hc"):
        inputs[name] = np.zeros_like(inputs[name])
    given = {n: v for n, v in inputs.items() if n not in ("h_prev", "b_hc", "sequence_length")}
    got = evaluate(lambda **named: blockcell.block_gru(**named, reset_after=reset_after), **given)
    want = references.expected(BLOCK_GRU, inputs, reset_after=reset_after)
    assert_close(got.h, want["h"])
    assert_close(got.h_last, want["h_last"])


@pytest.mark.parametrize("reset_after", [False, True])
def test_gradients(reset_after):
    """By `tf.gradients` and by `block_gru_grad`, against the oracle."""
    sizes = (BATCH, INPUT, CELL, TIME)
    inputs = references.inputs_of(BLOCK_GRU_GRAD, *sizes, reset_after=reset_after)
    want = references.expected(BLOCK_GRU_GRAD, inputs, reset_after=reset_after)
    names = [name[: -len("_grad")] for name in want]

    def derive(**named):
        own = {name: named[name] for name in (*names, "sequence_length")}
        outputs = blockcell.block_gru(**own, reset_after=reset_after)
        incoming = [named["h_grad"], named["h_last_grad"]]
        derived = tf.gradients(
            [outputs.h, outputs.h_last], [named[name] for name in names], incoming
        )
        direct = blockcell.block_gru_grad(**named, reset_after=reset_after)
        return derived, list(direct)

    for found in evaluate(derive, **inputs):
        for value, name in zip(found, want):
            assert_close(value, want[name])


def test_wrong_shape_is_an_error():
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match="w_ru must have shape"):
        evaluate(
            lambda: blockcell.block_gru(
                np.zeros([2, 3, 4], "f"),
                np.zeros([9, 10], "f"),
                np.zeros([9, 6], "f"),
                np.zeros([10], "f"),
                np.zeros([5], "f"),
            )
        )


@pytest.mark.parametrize("function", [blockcell.block_gru, blockcell.block_gru_grad])
def test_help_names_every_argument(function):
    text = inspect.getdoc(function)
    for name in inspect.signature(function).parameters:
        assert f"\n  {name}: " in text


# Weights in Keras's layout.


def random(*shape, seed=0):
    return np.random.RandomState([seed, *shape]).standard_normal(shape).astype("f") / 2


def keras_outputs(make, weights, x):
    """The outputs of a Keras layer with these weights, batch-major."""

    def build(x):
        x.set_shape([BATCH, TIME, INPUT])
        layer = make(CELL, return_sequences=True, recurrent_activation="sigmoid")
        layer.build((BATCH, TIME, INPUT))
        cell = layer if hasattr(layer, "kernel") else layer.cell
        for name, value in zip(("kernel", "recurrent_kernel", "bias"), weights):
            assert tuple(getattr(cell, name).shape) == value.shape
            object.__setattr__(cell, name, tf.constant(value))
        return layer(x)

    return evaluate(build, x=x)


@pytest.mark.parametrize("reset_after", [False, True])
def test_gru_weights(reset_after):
    bias = random(2, 3 * CELL) if reset_after else random(3 * CELL)
    weights = (random(INPUT, 3 * CELL), random(CELL, 3 * CELL), bias)
    x = random(BATCH, TIME, INPUT, seed=1)

    def make(*sizes, **options):
        return tf.keras.layers.GRU(*sizes, reset_after=reset_after, **options)

    ours = blockcell.gru_from_keras(*weights, reset_after=reset_after)
    got = evaluate(
        lambda x, **named: blockcell.block_gru(x, **named, reset_after=reset_after).h,
        x=x.transpose(1, 0, 2),
        **ours._asdict(),
    )
    assert_close(got.transpose(1, 0, 2), keras_outputs(make, weights, x))
    back = blockcell.gru_to_keras(*ours, reset_after=reset_after)
    for first, second in zip(ours, blockcell.gru_from_keras(*back, reset_after=reset_after)):
        np.testing.assert_array_equal(first, second)
    for got, want in zip(back[:2], weights):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("op", ["BlockLSTMV2", "BlockLSTM", "LSTMBlockCell"])
def test_lstm_weights(op):
    weights = (random(INPUT, 4 * CELL), random(CELL, 4 * CELL), random(4 * CELL))
    x = random(BATCH, TIME, INPUT, seed=1)
    ours = blockcell.lstm_from_keras(*weights, op=op)
    states = dict.fromkeys(("cs_prev", "h_prev"), np.zeros([BATCH, CELL], "f"))
    others = dict(states, **dict.fromkeys(("wci", "wcf", "wco"), np.zeros([CELL], "f")))
    if op == "LSTMBlockCell":  # One step.
        got = evaluate(
            lambda **named: tf.raw_ops.LSTMBlockCell(**named, forget_bias=0.0, cell_clip=-1.0).h,
            x=x[:, 0],
            **ours._asdict(),
            **others,
        )[np.newaxis]
    else:
        options = {} if op == "BlockLSTMV2" else {"forget_bias": 0.0}
        got = evaluate(
            lambda **named: getattr(tf.raw_ops, op)(**named, cell_clip=-1.0, **options).h,
            x=x.transpose(1, 0, 2),
            seq_len_max=np.array(TIME),
            **ours._asdict(),
            **others,
        )
    want = keras_outputs(tf.keras.layers.LSTM, weights, x)
    assert_close(got.transpose(1, 0, 2), want[:, : len(got)])
    for got, want in zip(blockcell.lstm_to_keras(*ours, op=op), weights):
        np.testing.assert_array_equal(got, want)


def test_weights_without_bias():
    kernels = random(INPUT, 3 * CELL), random(CELL, 3 * CELL)
    assert not blockcell.gru_from_keras(*kernels).b_hc.any()
    assert not blockcell.lstm_from_keras(random(INPUT, 4), random(1, 4)).b.any()


def test_weights_of_wrong_shape():
    with pytest.raises(ValueError, match=r"bias must have shape \[2, 21\], got \[21\]"):
        blockcell.gru_from_keras(random(INPUT, 21), random(7, 21), random(21))
    with pytest.raises(ValueError, match="op must be one of"):
        blockcell.lstm_from_keras(random(4, 4), random(1, 4), op="LSTM")
