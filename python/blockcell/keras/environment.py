"""What Keras there is, and whether the kernels can serve it."""

import importlib.util
import logging
from typing import Any, Set, Tuple

NEWEST_TESTED = (3, 15)
"""The newest release of Keras whose layers were tested (`make test-keras-newest`)."""
_warned: Set[Tuple[int, int]] = set()


def check() -> None:
    """Checks that Keras computes on a TensorFlow that the kernels serve.

    Warns once if Keras is newer than what was tested.

    Raises:
      RuntimeError: It computes on something else, or TensorFlow is older than 2.4.
    """
    backend = _backend()
    if backend != "tensorflow":
        raise RuntimeError(
            f"blockcell.keras supports Keras on TensorFlow, but Keras's backend is {backend}: set "
            "KERAS_BACKEND=tensorflow before Keras is imported"
        )
    import tensorflow as tf

    if _minor(tf.__version__) < (2, 4):
        raise RuntimeError(
            f"blockcell.keras needs TensorFlow 2.4 or later, and {tf.__version__} is running"
        )
    version = getattr(tf.keras, "__version__", "0.0")
    running = _minor(version)
    if running > NEWEST_TESTED and running not in _warned:
        _warned.add(running)
        logging.getLogger("blockcell").warning(
            "Keras %s is newer than %d.%d, the newest that blockcell.keras was tested with. Layers "
            "with arguments unknown to it run on Keras's own path.",
            *(version, *NEWEST_TESTED),
        )


def _minor(version: str) -> Tuple[int, int]:
    """`(3, 15)` of `"3.15.1"` or `"3.15.0.dev0"`."""
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def _backend() -> str:
    """What Keras 3 computes on. Earlier ones know TensorFlow alone."""
    if importlib.util.find_spec("keras") is None:  # TensorFlow before 2.6 has its own.
        return "tensorflow"
    import keras

    if not hasattr(keras, "__version__") or int(keras.__version__.split(".")[0]) < 3:
        return "tensorflow"
    return str(keras.backend.backend())


def hooks_of_version() -> Any:
    """The module for this Keras: `keras2` or `keras3`. Call `check` before.

    Either has `replacement(stock, of_rnn)`: a method that runs on the kernels where it can, and
    calls the method `stock` of Keras elsewhere. `of_rnn` says that this is the one of `RNN`, which
    LSTM and GRU call where the kernels do not serve. `OTHERS` are the recurrent layers whose loop
    is not that of `RNN`, which the kernels do not serve.
    """
    import tensorflow as tf

    from blockcell.keras import keras2, keras3

    return keras3 if hasattr(tf.keras.layers.RNN, "inner_loop") else keras2


def is_of_tf_keras(layer: Any) -> bool:
    """Whether a layer is a recurrent one of `tf_keras`, Keras 2 beside Keras 3.

    Where `TF_USE_LEGACY_KERAS` makes that package `tf.keras`, none is.
    """
    import tensorflow as tf

    return not isinstance(layer, tf.keras.layers.RNN) and any(
        kin.__name__ == "RNN" and kin.__module__.split(".")[0] == "tf_keras"
        for kin in type(layer).__mro__
    )
