"""Weights of Keras's LSTM and GRU layers as those of the block RNN ops, and back.

Keras keeps `kernel` (for x), `recurrent_kernel` (for the state) and `bias` apart; the ops have one
matrix, whose rows are those for x, then those for the state. The gates' columns differ in order:

    Keras LSTM      i f c o     BlockLSTMV2   i f c o     BlockLSTM, LSTMBlockCell   i c f o
    Keras GRU       z r h       w_ru          r u         w_c                        c

where z is u, and h is c. The functions take NumPy arrays, or tensors, which can be differentiated
through them, and return what they were given.
"""

import collections
from typing import Any, List, Sequence, Tuple

GRUWeights = collections.namedtuple("GRUWeights", "w_ru w_c b_ru b_c b_hc")
GRUWeights.__doc__ = """The weights of GRUBlockCell and BlockGRU (b_hc: of BlockGRU only).

  w_ru: [input_size + cell_size, 2 * cell_size]
  w_c: [input_size + cell_size, cell_size]
  b_ru: [2 * cell_size]
  b_c: [cell_size]
  b_hc: [cell_size]
"""

LSTMWeights = collections.namedtuple("LSTMWeights", "w b")
LSTMWeights.__doc__ = """The weights of the LSTM ops.

  w: [input_size + cell_size, 4 * cell_size]
  b: [4 * cell_size]
"""

KerasWeights = collections.namedtuple("KerasWeights", "kernel recurrent_kernel bias")
KerasWeights.__doc__ = """The weights of a Keras layer, in the order of `layer.get_weights()`."""

# For each op, where its gates' columns stand among Keras's i, f, c, o. Each is its own inverse.
_LSTM_ORDERS = {
    "BlockLSTMV2": (0, 1, 2, 3),
    "BlockLSTM": (0, 2, 1, 3),
    "LSTMBlockCell": (0, 2, 1, 3),
}


def lstm_from_keras(
    kernel: Any, recurrent_kernel: Any, bias: Any = None, op: str = "BlockLSTMV2"
) -> LSTMWeights:
    """Weights of an LSTM op from those of a Keras LSTM layer.

    Keras adds its `unit_forget_bias` to the bias itself: call `BlockLSTM` and `LSTMBlockCell` with
    `forget_bias=0`. The layer has to have `recurrent_activation="sigmoid"`.

    Args:
      kernel: `[input_size, 4 * cell_size]`.
      recurrent_kernel: `[cell_size, 4 * cell_size]`.
      bias: `[4 * cell_size]`; zeros if the layer has none.
      op: The op: `"BlockLSTMV2"`, `"BlockLSTM"` or `"LSTMBlockCell"`.

    Returns:
      `LSTMWeights`.

    Raises:
      ValueError: The shapes do not fit each other, or there is no such op.
    """
    order = _order(op)
    w, b = _of_layer(4, kernel, recurrent_kernel, bias, [])
    return LSTMWeights(_permuted(w, order), _permuted(b, order))


def lstm_to_keras(w: Any, b: Any, op: str = "BlockLSTMV2") -> KerasWeights:
    """Weights of a Keras LSTM layer from those of an LSTM op; undoes `lstm_from_keras`.

    Args:
      w: `[input_size + cell_size, 4 * cell_size]`.
      b: `[4 * cell_size]`, with the attribute `forget_bias` added to f's part by the caller.
      op: The op: `"BlockLSTMV2"`, `"BlockLSTM"` or `"LSTMBlockCell"`.

    Returns:
      `KerasWeights`: `[input_size, 4 * cell_size]`, `[cell_size, 4 * cell_size]`,
      `[4 * cell_size]`.

    Raises:
      ValueError: The shapes do not fit each other, or there is no such op.
    """
    order = _order(op)
    columns = int(w.shape[1])
    input_size = _input_size(w, _cells(columns, 4, "w"), "w")
    _check("b", b, [columns])
    w = _permuted(w, order)
    return KerasWeights(w[:input_size], w[input_size:], _permuted(b, order))


def gru_from_keras(
    kernel: Any, recurrent_kernel: Any, bias: Any = None, reset_after: bool = True
) -> GRUWeights:
    """Weights of a GRU op from those of a Keras GRU layer.

    With `reset_after` (Keras 2's and 3's default) they are for `BlockGRU` with the same attribute;
    without, for `GRUBlockCell` and `BlockGRU`. The layer has to have
    `recurrent_activation="sigmoid"`.

    Args:
      kernel: `[input_size, 3 * cell_size]`.
      recurrent_kernel: `[cell_size, 3 * cell_size]`.
      bias: `[2, 3 * cell_size]` with `reset_after`, the input's and the state's; `[3 * cell_size]`
        without. Zeros if the layer has none.
      reset_after: The layer's argument of this name.

    Returns:
      `GRUWeights`. `b_ru` is the sum of both biases with `reset_after`; `b_hc` is zero without.

    Raises:
      ValueError: The shapes do not fit each other.
    """
    cell_size = int(recurrent_kernel.shape[0])
    w, bias = _of_layer(3, kernel, recurrent_kernel, bias, [2] if reset_after else [])
    z, r, h = _split(w, 3)
    if reset_after:
        b_z, b_r, _ = _split(bias[0] + bias[1], 3)
        b_c, b_hc = bias[0][2 * cell_size :], bias[1][2 * cell_size :]
    else:
        b_z, b_r, b_c = _split(bias, 3)
        b_hc = _zeros_like(kernel, [cell_size])
    return GRUWeights(_concat([r, z], 1), h, _concat([b_r, b_z], 0), b_c, b_hc)


def gru_to_keras(
    w_ru: Any, w_c: Any, b_ru: Any, b_c: Any, b_hc: Any = None, reset_after: bool = True
) -> KerasWeights:
    """Weights of a Keras GRU layer from those of a GRU op.

    `gru_from_keras` of the result gives the arguments back. The other way round, Keras has two
    biases of the gates where the ops have their sum: it becomes the input's bias.

    Args:
      w_ru: `[input_size + cell_size, 2 * cell_size]`.
      w_c: `[input_size + cell_size, cell_size]`.
      b_ru: `[2 * cell_size]`.
      b_c: `[cell_size]`.
      b_hc: `[cell_size]`, zeros by default; used with `reset_after` only.
      reset_after: Whether the layer has `reset_after`.

    Returns:
      `KerasWeights`: `[input_size, 3 * cell_size]`, `[cell_size, 3 * cell_size]`, and a bias of
      `[2, 3 * cell_size]` with `reset_after`, `[3 * cell_size]` without.

    Raises:
      ValueError: The shapes do not fit each other.
    """
    cell_size = int(w_c.shape[1])
    input_size = _input_size(w_c, cell_size, "w_c")
    _check("w_ru", w_ru, [input_size + cell_size, 2 * cell_size])
    _check("b_ru", b_ru, [2 * cell_size])
    _check("b_c", b_c, [cell_size])
    r, u = _split(w_ru, 2)
    b_r, b_u = _split(b_ru, 2)
    weights = _concat([u, r, w_c], 1)
    bias = _concat([b_u, b_r, b_c], 0)
    if reset_after:
        if b_hc is None:
            b_hc = _zeros_like(w_c, [cell_size])
        _check("b_hc", b_hc, [cell_size])
        of_state = _concat([_zeros_like(w_c, [2 * cell_size]), b_hc], 0)
        bias = _concat([bias[None, :], of_state[None, :]], 0)
    return KerasWeights(weights[:input_size], weights[input_size:], bias)


def _order(op: str) -> Tuple[int, ...]:
    if op not in _LSTM_ORDERS:
        raise ValueError(f"op must be one of {', '.join(_LSTM_ORDERS)}, got {op}")
    return _LSTM_ORDERS[op]


def _of_layer(
    gates: int, kernel: Any, recurrent_kernel: Any, bias: Any, biases: List[int]
) -> Tuple[Any, Any]:
    """The matrix and the bias of a layer, checked; `biases` are further dimensions of the bias."""
    cell_size = int(recurrent_kernel.shape[0])
    columns = gates * cell_size
    _check("recurrent_kernel", recurrent_kernel, [cell_size, columns])
    _check("kernel", kernel, [int(kernel.shape[0]), columns])
    if bias is None:
        bias = _zeros_like(kernel, [*biases, columns])
    _check("bias", bias, [*biases, columns])
    return _concat([kernel, recurrent_kernel], 0), bias


def _check(name: str, value: Any, shape: List[int]) -> None:
    got = [int(size) for size in value.shape]
    if got != shape:
        raise ValueError(f"{name} must have shape {shape}, got {got}")


def _cells(columns: int, gates: int, name: str) -> int:
    if columns % gates:
        raise ValueError(f"{name} must have {gates} * cell_size columns, got {columns}")
    return columns // gates


def _input_size(weights: Any, cell_size: int, name: str) -> int:
    rows = int(weights.shape[0])
    if rows < cell_size:
        raise ValueError(f"{name} must have at least cell_size = {cell_size} rows, got {rows}")
    return rows - cell_size


def _permuted(value: Any, order: Sequence[int]) -> Any:
    parts = _split(value, len(order))
    return _concat([parts[place] for place in order], -1)


def _split(value: Any, parts: int) -> List[Any]:
    """Equal parts along the last axis."""
    size = int(value.shape[-1]) // parts
    return [value[..., part * size : (part + 1) * size] for part in range(parts)]


def _concat(values: List[Any], axis: int) -> Any:
    """The values joined: an array if they all are, else a tensor."""
    # Not at the top: a build imports this package where there is no NumPy.
    import numpy as np

    if all(isinstance(value, np.ndarray) for value in values):
        return np.concatenate(values, axis)
    import tensorflow as tf

    return tf.concat(values, axis)


def _zeros_like(value: Any, shape: List[int]) -> Any:
    """Zeros of the type of `value`: an array if that is one, else a tensor."""
    import numpy as np

    if isinstance(value, np.ndarray):
        return np.zeros(shape, value.dtype)
    import tensorflow as tf

    return tf.zeros(shape, value.dtype)
