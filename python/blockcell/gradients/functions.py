"""Gradients through the functions of a cell, from their values."""

from typing import Callable, Dict, NamedTuple, Tuple

import tensorflow as tf

_Through = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]
"""The gradient with respect to what a function takes, from that with respect to its value, and from
the value."""


def _hard_sigmoid(slope: float) -> _Through:
    return lambda d, y: tf.where((y > 0) & (y < 1), d * slope, tf.zeros_like(d))


# The factor of what is above zero, and that of the exponential function below.
_SELU = (1.0507009873554805, 1.7580993408473766)
_THROUGH: Dict[str, _Through] = {
    "tanh": lambda d, y: d * (1 - y * y),
    "sigmoid": lambda d, y: d * y * (1 - y),
    "relu": lambda d, y: tf.where(y > 0, d, tf.zeros_like(d)),
    "linear": lambda d, y: d,
    "hard_sigmoid": _hard_sigmoid(1 / 6),
    "hard_sigmoid_keras2": _hard_sigmoid(0.2),
    "softsign": lambda d, y: d * (1 - tf.abs(y)) ** 2,
    # The derivative is the logistic function.
    "softplus": lambda d, y: -d * tf.math.expm1(-y),
    "elu": lambda d, y: d * (1 + tf.minimum(y, tf.zeros_like(y))),
    "selu": lambda d, y: d * tf.where(y < 0, y + _SELU[1], _SELU[0] * tf.ones_like(y)),
}


class Functions(NamedTuple):
    """Gradients through the two functions of a cell."""

    state: _Through
    """Of what may enter the state, and of the state."""
    gate: _Through


def through(names: Tuple[str, str]) -> Functions:
    """Those through the functions of these names: of the state, and of the gates."""
    return Functions(*(_THROUGH[name] for name in names))
