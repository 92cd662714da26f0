"""Layers of `tf_keras`, Keras 2 beside Keras 3: they say once that they are not served."""

import functools
from typing import Any

from blockcell import after_import
from blockcell.keras import environment, scope

REASON = "it is a layer of tf_keras, and enable() applies to those of tf.keras"


@functools.lru_cache(maxsize=None)
def watch() -> None:
    """Lets them say it from now on, while `enable` is in force for all layers."""
    after_import.call(_put, "tf_keras")


def _put() -> None:
    import tensorflow as tf
    import tf_keras

    kind = tf_keras.layers.RNN
    if issubclass(kind, tf.keras.layers.RNN):
        return  # TensorFlow's own Keras is this one, by TF_USE_LEGACY_KERAS.
    stock = kind.__call__

    @functools.wraps(stock)
    def call(layer: Any, *arguments: Any, **named: Any) -> Any:
        if scope.get().everything is not None and environment.is_of_tf_keras(layer):
            from blockcell.keras import dispatch

            dispatch.say_once(layer, REASON)
        return stock(layer, *arguments, **named)

    kind.__call__ = call
