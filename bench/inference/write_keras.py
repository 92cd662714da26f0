"""Writes SavedModels of the Keras that TensorFlow has: `python -m bench.inference.write_keras`."""

import numpy as np
import tensorflow as tf

from bench.inference.nets import KERAS2, KERAS3, NETS
from bench.nets import weights


def model(net):
    """Layers of default options, whose weights and biases are not zero."""
    keras = tf.keras.layers
    x = tf.keras.Input([None, net.input_size], name="x")
    if net.form == KERAS2:
        h = keras.LSTM(net.units, return_sequences=True)(x)
        h = keras.Bidirectional(keras.GRU(net.units // 2, return_sequences=True), name="output")(h)
    else:
        make = {"lstm": keras.LSTM, "gru": keras.GRU}[net.cell]
        h = make(net.units, return_sequences=True)(x)
    made = tf.keras.Model(x, h)
    made.set_weights(weights([tuple(weight.shape) for weight in made.weights]))
    return made


def main():
    """Writes each of them once; beside one of Keras 3, its weights."""
    form = KERAS2 if tf.keras.__version__.startswith("2.") else KERAS3
    for net in {net.file: net for net in NETS if net.form == form}.values():
        made = model(net)
        if form == KERAS2:
            made.save(str(net.file), save_format="tf")
        else:
            made.export(str(net.file), verbose=False)
            named = {weight.name: weight.numpy() for weight in made.weights}
            np.savez(net.file / "weights.npz", **named)


if __name__ == "__main__":
    main()
