"""What the gradient functions share: incoming gradients that may be absent, and wide products."""

import numpy as np
import tensorflow as tf


def present(gradient):
    """Returns the gradient of one output as a tensor, or None if nothing flows in there.

    TensorFlow hands over None or zeros for an output that the loss does not depend on. Zeros are
    recognised by how the graph made them, in eager mode by their values, so that nothing is
    computed from them. Zeros of any other making are simply computed with.

    Args:
      gradient: A tensor, `tf.IndexedSlices` or None.
    """
    if gradient is None:
        return None
    gradient = tf.convert_to_tensor(gradient)
    return None if _is_zeros(gradient) else gradient


def _is_zeros(tensor):
    # The mark that TensorFlow 2 leaves on what tf.zeros and tf.zeros_like return.
    if getattr(tensor, "_is_zeros_tensor", False):
        return True
    if hasattr(tensor, "numpy"):
        return not np.any(tensor.numpy())
    op = tensor.op
    if op.type == "Identity":
        return _is_zeros(op.inputs[0])
    if op.type == "Fill":
        return _is_zeros(op.inputs[1])
    if op.type == "Const":
        return not np.any(tf.make_ndarray(op.get_attr("value")))
    return op.type == "ZerosLike"


def skipped(op):
    """Returns the indices of inputs whose gradients nobody asks for. Only a tape knows them."""
    return getattr(op, "skip_input_indices", None) or ()


def wide(tensor):
    """Returns `tensor` as float32, in which half is computed."""
    return tf.cast(tensor, tf.float32)


def product(a, b, transpose_a=False, transpose_b=False):
    """Returns the matrix product of `a` and `b`, accumulated in float32 and rounded once.

    TensorFlow's own product of half tensors accumulates in half; and `tf.matmul` chooses the slower
    product of batches of matrices where it does not know the rank.
    """
    wide_product = tf.raw_ops.MatMul(
        a=wide(a), b=wide(b), transpose_a=transpose_a, transpose_b=transpose_b
    )
    return tf.cast(wide_product, a.dtype)


def sum_rows(a):
    """Returns the sum over the batch, accumulated in float32 and rounded once."""
    return tf.cast(tf.reduce_sum(wide(a), axis=0), a.dtype)
