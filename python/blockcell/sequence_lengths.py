"""Sizes of tensors, and rows of different lengths in time-major sequences."""

from typing import Any

import tensorflow as tf


def size(tensor: Any, axis: int) -> Any:
    """The size of an axis: a number if it is known, else a tensor."""
    known = None if tensor.shape.rank is None else tf.compat.dimension_value(tensor.shape[axis])
    return tf.shape(tensor)[axis] if known is None else known


def longest(sequence_length: Any) -> Any:
    """The number of steps of the longest row, a scalar; 0 without rows."""
    return tf.maximum(tf.reduce_max(sequence_length), 0)  # No rows have the lowest number.


def at(sequence: Any, steps: Any) -> Any:
    """The rows of a sequence at these steps.

    Args:
      sequence: `[time, batch, ...]`.
      steps: int32 or int64, `[batch]` or `[n, batch]`.

    Returns:
      `[batch, ...]` or `[n, batch, ...]`.
    """
    shape = tf.shape(steps, out_type=steps.dtype)
    rows = tf.broadcast_to(tf.range(shape[-1]), shape)
    return tf.gather_nd(sequence, tf.stack([steps, rows], axis=-1))


def joined(before: Any, steps: Any) -> Any:
    """What holds before the first step, then after each: `[time + 1, batch, ...]`."""
    return tf.concat([tf.expand_dims(before, 0), steps], axis=0)


def after_last(before: Any, steps: Any, sequence_length: Any) -> Any:
    """What holds after each row's last step: `before` for rows without steps. `[batch, ...]`."""
    return at(joined(before, steps), sequence_length)
