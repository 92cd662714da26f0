"""Products and sums of the gradients.

The gradients of the single-step ops leave some products to their caller: `input_gradients`,
`weight_gradient` and `bias_gradient` are these, and nothing else computes them.

In eager mode they call the library's own ops: whoever differentiates has loaded it. A graph may be
saved, and loaded where the library is not. So while one is built they make it of TensorFlow's ops,
as the gradients of tf.contrib do. When it runs, the library's graph pass puts its own ops there,
one for the sum over all steps.

The library's ops accumulate in float32 and round once. TensorFlow's product of half tensors
accumulates in half.
"""

from typing import Sequence, Tuple

import tensorflow as tf

from blockcell import loader, sequence_lengths


def wide(tensor: tf.Tensor) -> tf.Tensor:
    """Returns `tensor` as float32, in which half is computed."""
    return tf.cast(tensor, tf.float32)


def product(
    a: tf.Tensor, b: tf.Tensor, transpose_a: bool = False, transpose_b: bool = False
) -> tf.Tensor:
    """Returns the matrix product of `a` and `b`, accumulated in float32 and rounded once.

    `tf.matmul` chooses the slower product of batches of matrices where it does not know the rank.
    """
    wide_product = tf.raw_ops.MatMul(
        a=wide(a), b=wide(b), transpose_a=transpose_a, transpose_b=transpose_b
    )
    return tf.cast(wide_product, a.dtype)


def input_gradients(d_bar: tf.Tensor, w: tf.Tensor, x: tf.Tensor) -> Tuple[tf.Tensor, tf.Tensor]:
    """Returns the two parts of `d_bar @ w^T`: the gradients of x and of the state.

    Args:
      d_bar: The gradient with respect to what enters the gates [batch, gates * cell_size].
      w: The weights [input_size + cell_size, gates * cell_size].
      x: The input [batch, input_size], whose size cuts the product.
    """
    input_size = sequence_lengths.size(x, 1)
    if tf.executing_eagerly():
        x_grad, h_prev_grad = loader.module().blockcell_mat_mul_slice(
            a=d_bar, b=w, num_parts=2, begins=[0, input_size], sizes=[input_size, -1]
        )
        return x_grad, h_prev_grad
    both = tf.raw_ops.MatMul(a=d_bar, b=w, transpose_b=True)
    return tf.slice(both, [0, 0], [-1, input_size]), tf.slice(both, [0, input_size], [-1, -1])


def weight_gradient(parts: Sequence[tf.Tensor], d_bar: tf.Tensor) -> tf.Tensor:
    """Returns `[parts[0] | parts[1] | ...]^T @ d_bar`, the gradient with respect to weights.

    Args:
      parts: What the weights multiply: tensors with the rows of `d_bar`, such as x and h_prev.
      d_bar: The gradient with respect to what enters the gates.
    """
    if tf.executing_eagerly():
        return loader.module().blockcell_mat_mul_add_n(a=list(parts), b=[d_bar], addends=[])
    left = parts[0] if len(parts) == 1 else tf.concat(parts, 1)
    return tf.raw_ops.MatMul(a=left, b=d_bar, transpose_a=True)


def bias_gradient(d_bar: tf.Tensor) -> tf.Tensor:
    """Returns the sum over the first dimension."""
    if tf.executing_eagerly():
        return loader.module().blockcell_bias_add_grad_add_n(out_backprop=[d_bar], addends=[])
    return tf.raw_ops.BiasAddGrad(out_backprop=d_bar)
