"""Exports models in a TensorFlow with Keras 3: `python -m bench.inference.write_keras3`."""

import numpy as np
import tensorflow as tf

from bench.inference.nets import KERAS3, NETS


def model(net, seed=20191018):
    """A layer of default options, whose weights and biases are not zero."""
    make = {"lstm": tf.keras.layers.LSTM, "gru": tf.keras.layers.GRU}[net.cell]
    x = tf.keras.Input([None, net.input_size], name="x")
    made = tf.keras.Model(x, make(net.units, return_sequences=True)(x))
    random = np.random.RandomState(seed)
    for weights in made.weights:
        shape = tuple(weights.shape)
        weights.assign(random.uniform(-1.0, 1.0, shape) / np.sqrt(shape[0]))
    return made


def main():
    """Writes each of them once, and its weights."""
    for net in {net.file: net for net in NETS if net.form == KERAS3}.values():
        made = model(net)
        made.export(str(net.file), verbose=False)
        weights = {weights.name: weights.numpy() for weights in made.weights}
        np.savez(net.file / "weights.npz", **weights)


if __name__ == "__main__":
    main()
