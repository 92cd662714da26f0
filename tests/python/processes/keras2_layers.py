"""Layers of Keras 2 in the process, for `test_keras2_layers`: each function trains a model."""

import functools
import tempfile

import numpy as np
import tensorflow as tf

import blockcell
from rewrite import counted

layers = tf.keras.layers
STEPS, FEATURES, UNITS = 7, 5, 9


def prepare():
    blockcell.load()


def _seed():
    # Later releases draw initial weights from a generator of Python.
    getattr(tf.keras.utils, "set_random_seed", tf.random.set_seed)(5)


def _model(*stack, batch=None):
    inputs = tf.keras.Input([STEPS, FEATURES], batch)
    outputs = inputs
    for layer in stack:
        outputs = layer(outputs)
    return tf.keras.Model(inputs, layers.Dense(1)(outputs))


def _initial(inputs):
    """A layer that begins with the states of another one."""
    _, h, c = layers.LSTM(UNITS, return_state=True)(inputs)
    return layers.LSTM(UNITS)(inputs, initial_state=[h, c])


MODELS = {
    "lstm": lambda: _model(layers.LSTM(UNITS)),
    "gru": lambda: _model(layers.GRU(UNITS)),
    "stacked": lambda: _model(layers.LSTM(UNITS, return_sequences=True), layers.GRU(UNITS)),
    "both directions": lambda: _model(layers.Bidirectional(layers.LSTM(UNITS))),
    "backwards": lambda: _model(layers.GRU(UNITS, go_backwards=True, return_sequences=True)),
    "stateful": lambda: _model(layers.LSTM(UNITS, stateful=True), batch=4),
    "dropout": lambda: _model(layers.LSTM(UNITS, dropout=0.3)),
    "initial state": lambda: _model(_initial),
    "masked": lambda: _model(layers.Masking(), layers.LSTM(UNITS)),
    "another activation": lambda: _model(layers.LSTM(UNITS, activation="relu")),
}


def trained(name):
    """What a model says before and after training, once saved, and trained again."""
    _seed()
    model = MODELS[name]()
    model.compile("sgd", "mse")
    random = np.random.RandomState(6)
    x = random.normal(size=(12, STEPS, FEATURES)).astype(np.float32)
    x[1::2, -2:] = 0  # Rows that a mask makes shorter.
    y = random.normal(size=(12, 1)).astype(np.float32)
    fit = functools.partial(_fit, x=x, y=y)

    def run():
        values = {"fit": fit(model), "predict": model.predict(x, batch_size=4).tolist()}
        with tempfile.TemporaryDirectory() as folder:
            model.save(folder, save_format="tf")
            loaded = tf.keras.models.load_model(folder)
        values["loaded predict"] = loaded.predict(x, batch_size=4).tolist()
        values["loaded fit"] = fit(loaded)
        return {"values": values}

    return counted(run)


def _fit(model, x, y):
    history = model.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0)
    return history.history["loss"] + [w.tolist() for w in model.get_weights()]


def eager(name):
    """A model that runs without functions."""
    _seed()
    model = MODELS[name]()
    model.compile("sgd", "mse", run_eagerly=True)
    random = np.random.RandomState(6)
    x = random.normal(size=(4, STEPS, FEATURES)).astype(np.float32)
    y = np.ones((4, 1), np.float32)
    return counted(lambda: {"values": {"fit": _fit(model, x, y)}})


for _name in MODELS:
    globals()["trained_" + _name] = functools.partial(trained, _name)
eager_lstm = functools.partial(eager, "lstm")
