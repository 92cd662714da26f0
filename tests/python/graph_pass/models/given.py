"""Inputs with values: what a graph knows of their shapes is what that of the model knows."""

import numpy as np
import tensorflow as tf


def given(values, known, name=None):
    """Values that a run may replace; `known` is the shape, with None for what may vary."""
    return tf.placeholder_with_default(values, known, name)


def numbers(low, high, shape, known, seed, name=None):
    return given(np.random.RandomState(seed).randint(low, high, shape).astype("i"), known, name)


def uniform(shape, known, seed):
    values = np.random.RandomState(seed).uniform(-1, 1, shape)
    return given(values.astype(np.float32), known)


def lengths_of(rows, most, seed=0):
    """Different lengths, the first of which is the most."""
    values = np.random.RandomState(seed).randint(1, most + 1, rows)
    values[0] = most
    return given(values.astype(np.int32), [None], "lengths")
