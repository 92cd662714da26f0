"""Keras's LSTM and GRU as layers that run on the kernels, whether `enable` was called or not."""

from typing import Any

import tensorflow as tf

from blockcell import loader, tf_internals
from blockcell.keras import environment, exports, reasons

loader.load()  # With its gradients: TensorFlow's of the LSTM op are wrong.
exports.mark()


def _on_kernels(layer: Any) -> Any:
    """Adds to a subclass of a Keras layer what makes it run on the kernels."""
    method = tf_internals.loop_of_layers()
    if method is None:
        return layer

    def stock(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(super(layer, self), method)(*args, **kwargs)

    setattr(layer, method, environment.hooks_of_version().replacement(stock, of_rnn=False))
    layer.uses_blockcell = property(_uses_blockcell)
    return layer


def _uses_blockcell(self: Any) -> bool:
    """Whether this layer runs on the kernels; `blockcell.keras.report` gives the reason if not."""
    return reasons.of_layer(self) is None


@tf.keras.utils.register_keras_serializable("blockcell")
@_on_kernels
class LSTM(tf.keras.layers.LSTM):
    """`keras.layers.LSTM` on blockcell's kernels.

    Arguments, weights, configuration and results are those of Keras's layer. If the kernels do not
    support its arguments, it runs on Keras's own path, and `uses_blockcell` is False.
    """


@tf.keras.utils.register_keras_serializable("blockcell")
@_on_kernels
class GRU(tf.keras.layers.GRU):
    """`keras.layers.GRU` on blockcell's kernels.

    Arguments, weights, configuration and results are those of Keras's layer. If the kernels do not
    support its arguments, it runs on Keras's own path, and `uses_blockcell` is False.
    """
