"""The matrix products that an op cannot do without: rows, columns and inner size, in symbols."""

from blockcell.op_table import (
    BLOCK_GRU,
    BLOCK_GRU_GRAD,
    BLOCK_LSTM,
    BLOCK_LSTM_GRAD,
    BLOCK_LSTM_GRAD_V2,
    BLOCK_LSTM_V2,
    GRU_CELL,
    GRU_CELL_GRAD,
    LSTM_CELL,
    LSTM_CELL_GRAD,
)

_ROWS, _STEPS = "input_size + cell_size", "time * batch"


def _forward(rows, *gates):
    """Of x and the state with the weights of gates."""
    return tuple((rows, columns, _ROWS) for columns in gates)


def _backward(*gates):
    """The gradients of all steps: those of x and the state, and those of weights."""
    pairs = [((_STEPS, _ROWS, columns), (_ROWS, columns, _STEPS)) for columns in gates]
    return tuple(product for pair in pairs for product in pair)


_GRU, _LSTM = ("2 * cell_size", "cell_size"), ("4 * cell_size",)

PRODUCTS = {
    GRU_CELL: _forward("batch", *_GRU),
    GRU_CELL_GRAD: tuple(("batch", _ROWS, columns) for columns in reversed(_GRU)),
    LSTM_CELL: _forward("batch", *_LSTM),
    LSTM_CELL_GRAD: (),
    BLOCK_LSTM: _forward(_STEPS, *_LSTM),
    BLOCK_LSTM_V2: _forward(_STEPS, *_LSTM),
    BLOCK_LSTM_GRAD: _backward(*_LSTM),
    BLOCK_LSTM_GRAD_V2: _backward(*_LSTM),
    BLOCK_GRU: _forward(_STEPS, *_GRU),
    BLOCK_GRU_GRAD: _backward(*_GRU),
}
"""By the name of the op."""
