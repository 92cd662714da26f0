"""Which of Keras's recurrent layers a layer is."""

from typing import Any, List, Optional

import tensorflow as tf

LSTM, GRU = "LSTM", "GRU"


def of(layer: Any) -> Optional[str]:
    """`"LSTM"` or `"GRU"`, also of an `RNN` around a cell of that kind; None for other layers."""
    for kind in (LSTM, GRU):
        if isinstance(layer, getattr(tf.keras.layers, kind)):
            return kind
    if not is_plain(layer):
        return None
    cell = getattr(layer, "cell", None)
    return next((kind for kind in (LSTM, GRU) if isinstance(cell, _cell_classes(kind)[0])), None)


def is_plain(layer: Any) -> bool:
    """Whether it is Keras's `RNN`, around some cell, and none of its subclasses."""
    return type(layer) is tf.keras.layers.RNN


def is_stock_cell(cell: Any, kind: str) -> bool:
    """Whether a cell is Keras's own of a kind, and no subclass of it."""
    return type(cell) in _cell_classes(kind)


def _cell_classes(kind: str) -> List[Any]:
    """Keras's cell of a kind, and the class that it is made of in Keras 2.4, whose layers use it.

    The last one is a base class of all others.
    """
    stock = getattr(tf.keras.layers, kind + "Cell")
    return [kin for kin in stock.__mro__ if kin.__name__ == stock.__name__][::-1]
