"""Models of Keras's tutorials, small, for `graph_pass/test_tutorials.py`: each function runs one.

It returns what the model gives, and how many calls ran on the kernels. With `BLOCKCELL_ENABLE=1`
the layers are exchanged.
"""

import os

import numpy as np
import tensorflow as tf

import blockcell
import keras_models

LETTERS, EMBEDDING, UNITS, ROWS, STEPS = 30, 8, 16, 4, 12
DAY, FEATURES = 24, 5
layers = tf.keras.layers


def prepare():
    blockcell.load()
    if os.environ.get("BLOCKCELL_ENABLE") == "1":
        blockcell.keras.enable()


def _counted(function):
    """What a function returns, how often the kernels of which ops ran, and what was rewritten."""

    def run():
        keras_models.seed(3)
        before = blockcell.info()
        values = function()
        after = blockcell.info()
        found = {"values": [np.asarray(value, np.float64).tolist() for value in values]}
        for kind in ("runs", "rewritten"):
            difference = {
                op: number - before[kind].get(op, 0) for op, number in after[kind].items()
            }
            found[kind] = {op: number for op, number in difference.items() if number}
        return found

    return run


class Generator(tf.keras.Model):
    """The next letter of a text, by a GRU whose state a caller may keep."""

    def __init__(self):
        super().__init__()
        self.embedding = layers.Embedding(LETTERS, EMBEDDING)
        self.gru = layers.GRU(UNITS, return_sequences=True, return_state=True)
        self.dense = layers.Dense(LETTERS)

    def call(self, inputs, states=None, return_state=False, training=False):
        x = self.embedding(inputs, training=training)
        if states is None:
            states = tf.zeros([tf.shape(x)[0], UNITS])
        x, states = self.gru(x, initial_state=states, training=training)
        x = self.dense(x, training=training)
        return (x, states) if return_state else x


def _text(rows, steps=STEPS):
    return np.random.RandomState(2).randint(0, LETTERS, [rows, steps])


def _generator():
    model = Generator()
    model(_text(1))
    for k, weight in enumerate(model.trainable_weights):
        weight.assign(keras_models.random(*weight.shape, seed=50 + k) / 2)
    return model


@_counted
def text_training():
    model = _generator()
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=tf.keras.optimizers.Adam(0.01), loss=loss)
    text = _text(3 * ROWS, STEPS + 1)
    history = model.fit(text[:, :-1], text[:, 1:], ROWS, epochs=2, shuffle=False, verbose=0)
    return [history.history["loss"], *(weight.numpy() for weight in model.trainable_weights)]


@_counted
def text_generation():
    """One letter after the other, the most likely one each time."""
    model = _generator()

    @tf.function
    def one_step(letters, states):
        scores, states = model(letters, states=states, return_state=True)
        return scores[:, -1], states

    letters, states, all_scores = tf.constant(_text(ROWS)), tf.zeros([ROWS, UNITS]), []
    for _ in range(6):
        scores, states = one_step(letters, states)
        letters = tf.argmax(scores, -1)[:, None]
        all_scores.append(scores.numpy())
    return [*all_scores, states.numpy()]


def _series(rows, steps):
    return keras_models.random(rows, steps, FEATURES, seed=7)


def _fit(model, outputs):
    x = _series(3 * ROWS, DAY)
    for k, weight in enumerate(model.trainable_weights):
        weight.assign(keras_models.random(*weight.shape, seed=50 + k) / 2)
    model.compile(optimizer=tf.keras.optimizers.Adam(), loss="mse", metrics=["mae"])
    history = model.fit(x, outputs, ROWS, epochs=2, shuffle=False, verbose=0)
    predicted = model.predict(x, ROWS, verbose=0)
    return [history.history["loss"], predicted, *(one.numpy() for one in model.trainable_weights)]


@_counted
def series_of_an_hour():
    """The temperature of each next hour."""
    x = tf.keras.Input([None, FEATURES])
    h = layers.LSTM(UNITS, return_sequences=True)(x)
    return _fit(tf.keras.Model(x, layers.Dense(1)(h)), _series(3 * ROWS, DAY)[:, :, :1])


@_counted
def series_of_a_day():
    """All of the next day at once."""
    x = tf.keras.Input([DAY, FEATURES])
    y = layers.Dense(DAY * FEATURES, kernel_initializer="zeros")(layers.LSTM(UNITS)(x))
    model = tf.keras.Model(x, layers.Reshape([DAY, FEATURES])(y))
    return _fit(model, _series(3 * ROWS, DAY)[:, ::-1])


class FeedBack(tf.keras.Model):
    """Hour after hour, each from the one before."""

    def __init__(self):
        super().__init__()
        self.cell = layers.LSTMCell(UNITS)
        self.warmup = layers.RNN(self.cell, return_state=True)
        self.dense = layers.Dense(FEATURES)

    def call(self, inputs, training=None):
        x, *state = self.warmup(inputs)
        predictions = [self.dense(x)]
        for _ in range(1, DAY):
            x, state = self.cell(predictions[-1], states=state, training=training)
            predictions.append(self.dense(x))
        return tf.transpose(tf.stack(predictions), [1, 0, 2])


@_counted
def series_fed_back():
    model = FeedBack()
    model(_series(1, DAY))
    return _fit(model, _series(3 * ROWS, DAY)[:, ::-1])
