"""The gradients of the library's ops for the products around a cell, for second derivatives.

docs/graph-ops.md defines the ops. Each function takes the node and the gradient with respect to
its outputs, as TensorFlow calls gradients, and returns those with respect to its inputs.
"""

from typing import Any, List

import tensorflow as tf

from blockcell.gradients.arithmetic import product
from blockcell.gradients.forward_call import present


def mat_mul_add_n_gradient(op: Any, incoming: Any) -> List[Any]:
    """Gradient of `BlockcellMatMulAddN`: `d_a = b @ d_sum^T` and `d_b = a @ d_sum`, part by part.

    Args:
      op: The node, with the inputs a [k_i, m_p], b [k_i, n] and addends [m, n].
      incoming: The gradient with respect to the sum [m, n].
    """
    d_sum = present(incoming)
    if d_sum is None:
        return [None] * len(op.inputs)
    addends, products = op.get_attr("num_addends"), op.get_attr("num_b")
    parts = op.get_attr("num_a") // max(products, 1)
    a, b = op.inputs[: parts * products], op.inputs[parts * products : (parts + 1) * products]
    d_a: List[Any] = []
    d_b: List[Any] = []
    for i in range(products):
        of_parts = a[i * parts : (i + 1) * parts]
        rows = tf.split(d_sum, [tf.shape(part)[1] for part in of_parts]) if parts > 1 else [d_sum]
        d_a += [product(b[i], d_part, transpose_b=True) for d_part in rows]
        d_b.append(tf.add_n([product(part, d_part) for part, d_part in zip(of_parts, rows)]))
    return d_a + d_b + [d_sum] * addends


def mat_mul_slice_gradient(op: Any, *incoming: Any) -> List[Any]:
    """Gradient of `BlockcellMatMulSlice`: those of the product, with zeros where no part was taken.

    Args:
      op: The node, with the inputs a [k, n] and b [m, n].
      *incoming: The gradients with respect to the parts.
    """
    a, b = op.inputs
    k, m = tf.shape(a)[0], tf.shape(b)[0]
    d_product = []
    for begin, d_part in zip(op.get_attr("begins"), map(present, incoming)):
        if d_part is not None:
            rows, columns = tf.unstack(tf.shape(d_part))
            d_product.append(tf.pad(d_part, [[0, k - rows], [begin, m - begin - columns]]))
    if not d_product:
        return [None, None]
    total = tf.add_n(d_product)
    return [product(total, b), product(total, a, transpose_a=True)]


def bias_add_grad_add_n_gradient(op: Any, incoming: Any) -> List[Any]:
    """Gradient of `BlockcellBiasAddGradAddN`: that of the sum, for each row.

    Args:
      op: The node, with the inputs addends [n] and out_backprop [k_i, n].
      incoming: The gradient with respect to the sum [n].
    """
    d_sum = present(incoming)
    if d_sum is None:
        return [None] * len(op.inputs)
    matrices = op.inputs[: op.get_attr("num_out_backprop")]
    d_matrices = [tf.broadcast_to(d_sum, tf.shape(matrix)) for matrix in matrices]
    return d_matrices + [d_sum] * op.get_attr("num_addends")


GRADIENTS = {
    "BlockcellMatMulAddN": mat_mul_add_n_gradient,
    "BlockcellMatMulSlice": mat_mul_slice_gradient,
    "BlockcellBiasAddGradAddN": bias_add_grad_add_n_gradient,
}
"""By the op."""
