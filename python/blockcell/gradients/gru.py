"""The gradient of `GRUBlockCell`."""

import tensorflow as tf

from blockcell.gradients.incoming import present, product, skipped, sum_rows


def gru_block_cell_gradient(op, d_r, d_u, d_c, d_h):
    r"""Gradient of `GRUBlockCell` with respect to all of its inputs.

    The cell, with S the logistic function::

        [r_bar | u_bar] = [x | h_prev] @ w_ru + b_ru ;  r = S(r_bar), u = S(u_bar)
        c = tanh([x | r*h_prev] @ w_c + b_c)
        h = u*h_prev + (1-u)*c

    Its gradient is the chain rule applied to these::

        d_c_bar      = (d_h*(1-u) + d_c) * (1-c*c)
        d_u_bar      = (d_h*(h_prev-c) + d_u) * u*(1-u)
        [dx2 | d_hr] = d_c_bar @ w_c^T
        d_r_bar      = (d_hr*h_prev + d_r) * r*(1-r)
        [dx1 | dh1]  = [d_r_bar | d_u_bar] @ w_ru^T
        d_x          = dx1 + dx2
        d_h_prev     = dh1 + d_hr*r + d_h*u
        d_w_ru       = [x | h_prev]^T @ [d_r_bar | d_u_bar]
        d_w_c        = [x | r*h_prev]^T @ d_c_bar
        d_b_ru, d_b_c = sums of [d_r_bar | d_u_bar] and of d_c_bar over the batch

    All of it is linear in the incoming gradients. `GRUBlockCellGrad` computes the share of `d_h`;
    the share of `d_r`, `d_u` and `d_c` is computed by stock ops and added, if there is any.

    Args:
      op: The `GRUBlockCell` node: inputs x [batch, input_size], h_prev [batch, cell_size],
        w_ru [input_size + cell_size, 2 * cell_size], w_c [input_size + cell_size, cell_size],
        b_ru [2 * cell_size], b_c [cell_size]; float32.
      d_r: Gradient with respect to the output r [batch, cell_size], or None.
      d_u: The same of u.
      d_c: The same of c.
      d_h: The same of h.

    Returns:
      The gradients with respect to the six inputs, in their order and of their shapes.
    """
    x, h_prev, w_ru, w_c, b_ru, b_c = op.inputs
    r, u, c, h = op.outputs
    d_r, d_u, d_c, d_h = (present(gradient) for gradient in (d_r, d_u, d_c, d_h))
    gates = [gradient is not None for gradient in (d_r, d_u, d_c)]

    shares = []
    if d_h is not None or not any(gates):
        shares.append(
            tf.raw_ops.GRUBlockCellGrad(
                x=x,
                h_prev=h_prev,
                w_ru=w_ru,
                w_c=w_c,
                b_ru=b_ru,
                b_c=b_c,
                r=r,
                u=u,
                c=c,
                d_h=tf.zeros_like(h) if d_h is None else d_h,
            )
        )
    if any(gates):
        d_r, d_u, d_c = (
            tf.zeros_like(h) if gradient is None else gradient for gradient in (d_r, d_u, d_c)
        )
        shares.append(_share_of_gates(x, h_prev, w_ru, w_c, r, u, c, d_r, d_u, d_c))
    d_x, d_h_prev, d_c_bar, d_r_bar_u_bar = (sum(share[1:], share[0]) for share in zip(*shares))

    skip = skipped(op)
    d_w_ru = d_w_c = None
    if 2 not in skip:
        d_w_ru = product(tf.concat([x, h_prev], axis=1), d_r_bar_u_bar, transpose_a=True)
    if 3 not in skip:
        d_w_c = product(tf.concat([x, r * h_prev], axis=1), d_c_bar, transpose_a=True)
    return d_x, d_h_prev, d_w_ru, d_w_c, sum_rows(d_r_bar_u_bar), sum_rows(d_c_bar)


def _share_of_gates(x, h_prev, w_ru, w_c, r, u, c, d_r, d_u, d_c):
    """What `GRUBlockCellGrad` would return for gradients of r, u and c instead of h.

    The equations of `gru_block_cell_gradient` with d_h = 0.
    """
    input_size = tf.shape(x)[1]
    d_c_bar = d_c * (1 - c * c)
    d_u_bar = d_u * u * (1 - u)
    d_xhr = product(d_c_bar, w_c, transpose_b=True)
    d_hr = d_xhr[:, input_size:]
    d_r_bar = (d_hr * h_prev + d_r) * r * (1 - r)
    d_r_bar_u_bar = tf.concat([d_r_bar, d_u_bar], axis=1)
    d_xh = product(d_r_bar_u_bar, w_ru, transpose_b=True)
    d_x = d_xh[:, :input_size] + d_xhr[:, :input_size]
    d_h_prev = d_xh[:, input_size:] + d_hr * r
    return d_x, d_h_prev, d_c_bar, d_r_bar_u_bar
