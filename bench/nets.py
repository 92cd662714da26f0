"""What networks of several comparisons have in common. NumPy is all it needs."""

import numpy as np

LARGEST_ERROR = 2e-5
"""How much results may differ, relative to the largest element."""


def sizes(net):
    """The sizes of a net in words: time, batch, input size, units."""
    return f"{net.time}x{net.batch}x{net.input_size}x{net.units}"


def uniform(random, *shape):
    """An array of numbers between -1 and 1."""
    return random.uniform(-1.0, 1.0, shape).astype(np.float32)


def weights(shapes, seed=20191018):
    """Random weights and biases of these shapes, none of which is zero."""
    random = np.random.RandomState(seed)
    return [uniform(random, *shape) / np.float32(np.sqrt(shape[0])) for shape in shapes]
