"""Products and sums of the gradients: float32 inside, whatever comes in and goes out."""

import tensorflow as tf


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
    """Returns the sum over the first dimension, accumulated in float32 and rounded once."""
    return tf.cast(tf.reduce_sum(wide(a), axis=0), a.dtype)
