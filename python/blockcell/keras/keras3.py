"""Keras 3: a layer's loop over time, the method `inner_loop`, on the kernels.

There Keras asks `keras.src.backend.lstm` and `gru` for a fast path. These learn neither whether
masked outputs are zeros nor which layer asks, so the method is replaced, not the functions.
"""

from typing import Any, Callable

import tensorflow as tf

from blockcell.keras import dispatch

OTHERS = ()


def replacement(stock: Callable[..., Any], of_rnn: bool) -> Callable[..., Any]:
    """As `environment.hooks_of_version` says."""

    def inner_loop(
        self: Any, sequences: Any, initial_state: Any, mask: Any, training: Any = False
    ) -> Any:
        if of_rnn and isinstance(self, (tf.keras.layers.LSTM, tf.keras.layers.GRU)):
            return stock(self, sequences, initial_state, mask, training=training)
        return _inner_loop(self, stock, sequences, initial_state, mask, training)

    return inner_loop


@tf.autograph.experimental.do_not_convert
def _inner_loop(
    layer: Any, stock: Callable[..., Any], x: Any, states: Any, mask: Any, training: Any
) -> Any:
    if dispatch.refused(layer, x, infers=not training):
        return stock(layer, x, states, mask, training=training)
    given = dispatch.given(layer, x, states, mask)
    if dispatch.misfits(layer, given):
        return stock(layer, x, states, mask, training=training)
    if training and 0 < layer.cell.dropout < 1:
        # The same for all steps. Keras has drawn it already.
        given = given._replace(x=x * tf.expand_dims(layer.cell.get_dropout_mask(x[:, 0, :]), 1))
    return tuple(dispatch.run(layer, given, infers=not training))
