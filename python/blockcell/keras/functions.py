"""The functions of Keras's cells that the kernels have."""

from typing import Any, NamedTuple, Optional

import tensorflow as tf

_KERASS = (
    *("tanh", "sigmoid", "relu", "linear", "hard_sigmoid"),
    *("softsign", "softplus", "elu", "selu"),
)


class Functions(NamedTuple):
    """The functions of a cell, by the names that attributes of ops have for them."""

    activation: str = "tanh"
    recurrent_activation: str = "sigmoid"


USUAL = Functions()
"""Those that TensorFlow's ops have, too."""


def of(cell: Any) -> Functions:
    """Those of a cell, which the kernels have: `unknown` says that of none of them.

    Args:
      cell: Keras's.
    """
    return Functions(*(_name(getattr(cell, argument)) or "" for argument in Functions._fields))


def unknown(cell: Any) -> Optional[str]:
    """Which function of a cell the kernels do not have, a clause; None if they have both.

    Args:
      cell: Keras's.
    """
    for argument in Functions._fields:
        function = getattr(cell, argument)
        if _name(function) is None:
            name = getattr(function, "__name__", type(function).__name__)
            return f"{argument} is {name}, and the kernels support {', '.join(_KERASS)}"
    return None


def _name(function: Any) -> Optional[str]:
    """The kernels' name of a function, which is Keras's or TensorFlow's; None if they have none."""
    places = [tf.keras.activations, tf.math, tf.nn, getattr(tf.keras, "ops", None)]
    for name in _KERASS:
        if any(function is getattr(place, name, _Missing) for place in places):
            is_of_keras_2 = name == "hard_sigmoid" and not hasattr(
                tf.keras.layers.RNN, "inner_loop"
            )
            return name + "_keras2" if is_of_keras_2 else name
    return None


class _Missing:
    """No function is this."""
