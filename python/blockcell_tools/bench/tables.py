"""What the benchmark can measure: single ops, and forward passes with their gradients."""

from blockcell import op_table
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
from blockcell_tools.bench.ops import Op, Workload


def _table(*rows):
    """Ops by name: single ones, and a forward op with its gradient, `BlockLSTM+Grad`."""
    names = [forward + ("+Grad" if grad else "") for forward, *grad in rows]
    return {
        name: Op(name, tuple(op_table.OPS[kernel] for kernel in row))
        for name, row in zip(names, rows)
    }


OPS = _table(
    [GRU_CELL],
    [GRU_CELL_GRAD],
    [LSTM_CELL],
    [LSTM_CELL_GRAD],
    [BLOCK_LSTM],
    [BLOCK_LSTM, BLOCK_LSTM_GRAD],
    [BLOCK_LSTM_V2],
    [BLOCK_LSTM_V2, BLOCK_LSTM_GRAD_V2],
    [BLOCK_LSTM_GRAD],
    [BLOCK_LSTM_GRAD_V2],
)
"""The ops that TensorFlow has kernels for, by name."""

USUAL_OPS = tuple(name for name in OPS if name not in (BLOCK_LSTM_GRAD, BLOCK_LSTM_GRAD_V2))
"""Those measured unless told otherwise: backward passes of sequences come with the forward one."""

BLOCK_GRU_OPS = _table([BLOCK_GRU], [BLOCK_GRU, BLOCK_GRU_GRAD])
"""The ops that are the library's alone, by name; nothing in TensorFlow to compare them with."""


def encode(case):
    """A case as plain JSON."""
    return [case.op.name, *case[1:]]


def decode(fields):
    """The case that `encode` put into JSON."""
    return Workload(OPS[fields[0]], *fields[1:])
