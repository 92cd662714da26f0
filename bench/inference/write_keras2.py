"""Writes SavedModels in a TensorFlow with Keras 2: `python -m bench.inference.write_keras2`."""

import numpy as np
import tensorflow as tf

from bench.inference.nets import KERAS2, NETS


def model(net, seed=20191018):
    """Layers of default options, whose weights and biases are not zero."""
    keras = tf.keras.layers
    x = tf.keras.Input([None, net.input_size], name="x")
    h = keras.LSTM(net.units, return_sequences=True)(x)
    h = keras.Bidirectional(keras.GRU(net.units // 2, return_sequences=True), name="output")(h)
    made = tf.keras.Model(x, h)
    random = np.random.RandomState(seed)
    for weights in made.weights:
        shape = weights.shape.as_list()
        weights.assign(random.uniform(-1.0, 1.0, shape) / np.sqrt(shape[0]))
    return made


def main():
    """Writes each of them once."""
    for net in {net.file: net for net in NETS if net.form == KERAS2}.values():
        model(net).save(str(net.file), save_format="tf")


if __name__ == "__main__":
    main()
