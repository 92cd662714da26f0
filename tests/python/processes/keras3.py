"""Inference of models of Keras 3, for `test_keras3`: each function makes, exports and runs one."""

import functools
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

import blockcell
from helpers.failures import uncancelled
from rewrite import config, counted

BATCH, STEPS, INPUT = 3, 6, 5
layers = tf.keras.layers
v1 = tf.compat.v1


def prepare():
    blockcell.load()


def _inputs(steps=None, dtype="float32", batch=None):
    return tf.keras.Input(batch_shape=(batch, steps, INPUT), dtype=dtype)


def _one(layer, **options):
    """A model with one layer."""
    x = _inputs(**options)
    return tf.keras.Model(x, layer(x))


def _masked(layer):
    x = _inputs()
    return tf.keras.Model(x, layer(layers.Masking()(x)))


def lstm():
    x = _inputs()
    h = layers.LSTM(6, return_sequences=True)(x)
    return tf.keras.Model(x, layers.LSTM(4, go_backwards=True)(h))


def gru():
    return _one(layers.GRU(6, return_sequences=True))


def last_of_gru():
    return _one(layers.GRU(6))


def fixed_steps():
    return _one(layers.LSTM(4, return_sequences=True), steps=STEPS)


def fixed_sizes():
    return _one(layers.GRU(4), steps=STEPS, batch=BATCH)


def one_row():
    return _one(layers.LSTM(4, return_sequences=True, return_state=True), steps=STEPS, batch=1)


def one_masked_row():
    x = _inputs(steps=STEPS, batch=1)
    return tf.keras.Model(x, layers.LSTM(4, return_sequences=True)(layers.Masking()(x)))


def both_directions():
    return _one(layers.Bidirectional(layers.LSTM(4, return_sequences=True)))


def states():
    return _one(layers.LSTM(4, return_sequences=True, return_state=True))


def only_states():
    """Without its outputs, a layer has a value for no steps, too."""
    x = _inputs()
    return tf.keras.Model(x, layers.LSTM(4, return_state=True)(x)[1:])


def first_states():
    x = _inputs()
    first = [layers.Dense(4, activation="tanh")(x[:, 0]) for _ in range(2)]
    return tf.keras.Model(x, layers.LSTM(4)(x, initial_state=first))


def stateful():
    return _one(layers.GRU(4, stateful=True), batch=BATCH)


def half():
    return _one(layers.LSTM(4, dtype="float16"), dtype="float16")


def half_gru():
    return _one(layers.GRU(4, dtype="float16", return_sequences=True), dtype="float16")


def masked():
    return _masked(layers.LSTM(4))


def masked_outputs():
    return _masked(layers.GRU(4, return_sequences=True))


def masked_backwards():
    return _masked(layers.Bidirectional(layers.LSTM(4, return_sequences=True)))


def masked_zeros():
    cell = layers.LSTMCell(4)
    return _masked(layers.RNN(cell, return_sequences=True, zero_output_for_mask=True))


def cell_of_lstm():
    return _one(layers.RNN(layers.LSTMCell(4), return_sequences=True))


def relu():
    return _one(layers.LSTM(4, activation="relu"))


def relu_and_hard_sigmoid():
    options = dict(activation="relu", recurrent_activation="hard_sigmoid")
    return _one(layers.LSTM(4, return_sequences=True, **options))


def linear():
    return _masked(layers.LSTM(4, activation="linear", recurrent_activation="relu"))


def tanh_of_gates():
    return _one(layers.LSTM(4, activation="sigmoid", recurrent_activation="tanh"))


def gru_relu():
    return _one(layers.GRU(4, activation="relu"))


def gru_linear():
    return _masked(layers.GRU(4, activation=None, recurrent_activation="relu"))


def gru_hard_sigmoid():
    options = dict(activation=None, recurrent_activation="hard_sigmoid")
    return _masked(layers.GRU(4, return_sequences=True, **options))


def elu():
    return _one(layers.LSTM(4, activation="elu"))


def reset_before():
    return _one(layers.GRU(4, reset_after=False))


def masked_reset_before():
    return _masked(layers.GRU(4, reset_after=False, return_sequences=True))


def half_reset_before():
    return _one(layers.GRU(4, reset_after=False, dtype="float16"), dtype="float16")


def without_bias():
    return _one(layers.LSTM(4, use_bias=False))


def masked_without_bias():
    return _masked(layers.LSTM(4, use_bias=False, return_sequences=True))


def gru_without_bias():
    return _one(layers.GRU(4, use_bias=False))


def reset_before_without_bias():
    return _one(layers.GRU(4, use_bias=False, reset_after=False))


def stacked_cells():
    return _one(layers.RNN([layers.LSTMCell(4), layers.LSTMCell(3)]))


def sequence_without_bias():
    return _one(layers.LSTM(4, use_bias=False, return_sequences=True))


def sequence_of_stacked_cells():
    cells = [layers.LSTMCell(4), layers.LSTMCell(3)]
    return _one(layers.RNN(cells, return_sequences=True))


MODELS = (
    lstm,
    gru,
    last_of_gru,
    fixed_steps,
    fixed_sizes,
    one_row,
    one_masked_row,
    only_states,
    both_directions,
    states,
    first_states,
    stateful,
    half,
    half_gru,
    masked,
    masked_outputs,
    masked_backwards,
    masked_zeros,
    cell_of_lstm,
    relu,
    relu_and_hard_sigmoid,
    linear,
    tanh_of_gates,
    gru_relu,
    gru_linear,
    gru_hard_sigmoid,
    elu,
    reset_before,
    masked_reset_before,
    half_reset_before,
    without_bias,
    masked_without_bias,
    gru_without_bias,
    reset_before_without_bias,
    stacked_cells,
    sequence_without_bias,
    sequence_of_stacked_cells,
)


def _model(make):
    model = make()
    for number, weights in enumerate(model.weights):
        random = np.random.RandomState(number)
        weights.assign(random.uniform(-0.7, 0.7, weights.shape))
    return model


def _x(batch, steps, columns=INPUT, seed=0):
    random = np.random.RandomState(seed)
    return random.uniform(-1, 1, [batch, steps, columns])


def feeds():
    """What a model is fed with, by name. Rows of zeros are masked where the model has a mask."""
    x = _x(BATCH, STEPS)
    padded, holes, ended = x.copy(), x.copy(), x.copy()
    padded[0, 4:] = padded[2, 2:] = 0
    holes[0, 1] = holes[1, :2] = holes[1, 5] = 0
    ended[1] = 0
    nan = x.copy()
    nan[1, 3:] = np.nan
    return {
        "rows": x,
        "padded": padded,
        "holes": holes,
        "ended": ended,
        "nothing": np.zeros_like(x),
        "nan": nan,
        "one": _x(1, 1),
        "row": x[:1],
        "row with holes": holes[1:2],
        "many": _x(BATCH, 40, seed=1),
        "no rows": x[:0],
        "no steps": x[:, :0],
        "wide": _x(BATCH, STEPS, columns=INPUT + 1),
    }


def _outcomes(serve, dtype):
    results = {}
    for name, x in feeds().items():
        try:
            outputs = uncancelled(functools.partial(serve, x.astype(dtype)))
            shaped = [[y.astype(np.float64).tolist(), list(y.shape)] for y in outputs]
            results[name] = {"values": shaped}
        except (tf.errors.OpError, TypeError, ValueError) as error:
            results[name] = {"error": type(error).__name__}
    return results


def _of_function(path, dtype):
    loaded = tf.saved_model.load(path)  # It holds the variables.

    def serve(x):
        outputs = loaded.signatures["serving_default"](tf.constant(x))
        return [outputs[name].numpy() for name in sorted(outputs)]

    return _outcomes(serve, dtype)


def _of_session(path, dtype):
    with tf.Graph().as_default(), v1.Session(config=config(True)) as running:
        model = v1.saved_model.load(running, ["serve"], path)
        signature = model.signature_def["serving_default"]
        (x_info,) = signature.inputs.values()
        outputs = [signature.outputs[key].name for key in sorted(signature.outputs)]
        return _outcomes(lambda x: running.run(outputs, {x_info.name: x}), dtype)


def exported(make):
    """A model as a SavedModel, in a function and in a session."""
    model = _model(make)
    dtype = model.inputs[0].dtype
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model")
        model.export(path, verbose=False)
        function = counted(lambda: {"outcomes": _of_function(path, dtype)})
        session = counted(lambda: {"outcomes": _of_session(path, dtype)})
    return {"function": function, "session": session}


def without_values():
    """A session in which the variables of a model have no values."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model")
        _model(only_states).export(path, verbose=False)
        with tf.Graph().as_default(), v1.Session(config=config(True)) as empty:
            with v1.Session() as restored:
                model = v1.saved_model.load(restored, ["serve"], path)
            signature = model.signature_def["serving_default"]
            (x_info,) = signature.inputs.values()
            outputs = [signature.outputs[key].name for key in sorted(signature.outputs)]
            run = functools.partial(empty.run, outputs)
            return counted(lambda: {"outcomes": _outcomes(lambda x: run({x_info.name: x}), "f4")})


def trained(make):
    """Gradients of a model, and what it computes in training, in a function."""
    model = _model(make)
    x = tf.constant(feeds()["padded"].astype(model.inputs[0].dtype))

    @tf.function
    def train(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            outputs = tf.nest.flatten(model(x, training=True))
            total = tf.add_n([tf.reduce_sum(y * tf.cos(y)) for y in outputs])
        return [total, *tape.gradient(total, [x, *model.trainable_variables])]

    def run():
        results = [y.numpy() for y in train(x)]
        return {"values": [[y.astype(np.float64).tolist(), list(y.shape)] for y in results]}

    return counted(run)


def assigned():
    """A layer whose weights change in the function that runs it, before and after."""
    model = _model(gru)
    kernel = model.trainable_variables[0].value

    @tf.function
    def steps(x):
        first = model(x)
        kernel.assign_add(tf.ones_like(kernel))
        second = model(x)
        kernel.assign(-kernel)
        return first, second, model(x)

    def run():
        results = [y.numpy() for y in steps(tf.constant(feeds()["rows"], tf.float32))]
        return {"values": [[y.astype(np.float64).tolist(), list(y.shape)] for y in results]}

    return counted(run)


for _make in MODELS:
    for _kind in (exported, trained):
        globals()[f"{_kind.__name__}_{_make.__name__}"] = functools.partial(_kind, _make)
