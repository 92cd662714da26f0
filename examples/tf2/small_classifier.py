"""Trains a small Keras model. It knows nothing of blockcell: `blockcell compare` runs it."""

import numpy as np
import tensorflow as tf

layers = tf.keras.layers
random = np.random.RandomState(1)
x = random.standard_normal([1024, 35, 16]).astype("float32")
y = (x.mean(axis=(1, 2)) > 0).astype("float32")

model = tf.keras.Sequential(
    [
        layers.LSTM(64, return_sequences=True, name="words"),
        layers.GRU(64, return_sequences=True, name="phrases"),
        layers.SimpleRNN(8, activation="relu", name="summary"),
        layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile("adam", "binary_crossentropy")
model.fit(x, y, batch_size=32, epochs=1, verbose=0)
