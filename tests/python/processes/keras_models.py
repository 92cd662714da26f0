"""What the processes that test `blockcell.keras` share."""

import contextlib
import unittest.mock

import numpy as np
import tensorflow as tf

import blockcell
from blockcell.keras import dispatch

KERAS2 = not hasattr(tf.keras.layers.LSTM, "inner_loop")


def seed(number):
    if hasattr(tf.keras.utils, "set_random_seed"):
        tf.keras.utils.set_random_seed(number)
    else:
        np.random.seed(number)
        tf.random.set_seed(number)


def random(*shape, seed=0):
    return np.random.RandomState([seed, *shape]).standard_normal(shape).astype("f")


def with_random_weights(layer, shape):
    """Builds a layer or a model, and gives it random weights."""
    if not layer.built:
        layer.build(tuple(shape))
    states = getattr(layer, "stateful", False)
    weights = layer.trainable_weights if states else layer.weights
    for k, weight in enumerate(weights):
        weight.assign(random(*weight.shape, seed=50 + k) / 2)
    return layer


@contextlib.contextmanager
def on_kernels(on=True):
    """Enables the kernels if `on`; gives a list with the layer's name for each call they serve."""
    calls = []
    run = dispatch.run

    def counted(layer, *arguments, **options):
        calls.append(layer.name)
        return run(layer, *arguments, **options)

    with unittest.mock.patch.object(dispatch, "run", counted):
        if on:
            blockcell.keras.enable()
        try:
            yield calls
        finally:
            blockcell.keras.disable()
