"""The gradients of `GRUBlockCell` and `GRUBlockCellGrad`."""

import tensorflow as tf

from blockcell.gradients.arithmetic import product, sum_rows
from blockcell.gradients.incoming import or_zeros, present, skipped
from blockcell.gradients.partial import partial_gradients

_INPUTS = ("x", "h_prev", "w_ru", "w_c", "b_ru", "b_c")
_OUTPUTS = ("r", "u", "c")  # Those that the gradient op takes.


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

    `GRUBlockCellGrad` computes the first half of it if gradients arrive at h only. If any arrives
    at r, u or c, all of it is computed by stock ops.

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
    x, h_prev = op.inputs[:2]
    r, u, c, h = op.outputs
    incoming = [present(gradient) for gradient in (d_r, d_u, d_c, d_h)]
    if all(gradient is None for gradient in incoming[:3]):
        named = dict(zip(_INPUTS + _OUTPUTS, list(op.inputs) + [r, u, c]))
        d_h = or_zeros(incoming[3], h)
        grads = tf.raw_ops.GRUBlockCellGrad(d_h=d_h, **named)
    else:
        grads = _block_cell_grad(op.inputs, [r, u, c], incoming)
    d_x, d_h_prev, d_c_bar, d_r_bar_u_bar = grads

    skip = skipped(op)
    d_w_ru = d_w_c = None
    if 2 not in skip:
        d_w_ru = product(tf.concat([x, h_prev], axis=1), d_r_bar_u_bar, transpose_a=True)
    if 3 not in skip:
        d_w_c = product(tf.concat([x, r * h_prev], axis=1), d_c_bar, transpose_a=True)
    return d_x, d_h_prev, d_w_ru, d_w_c, sum_rows(d_r_bar_u_bar), sum_rows(d_c_bar)


def gru_block_cell_grad_gradient(op, *incoming):
    """Gradient of `GRUBlockCellGrad`, for second derivatives.

    The op's equations are those of `gru_block_cell_gradient` with d_r = d_u = d_c = 0. All ten
    inputs count as independent of each other, r, u and c too: what they depend on is for the
    gradient of `GRUBlockCell`, which made them, to say.

    Args:
      op: The `GRUBlockCellGrad` node: inputs x, h_prev, w_ru, w_c, b_ru, b_c as of `GRUBlockCell`,
        r, u, c and d_h [batch, cell_size]; float32.
      *incoming: Gradients with respect to its outputs d_x [batch, input_size], d_h_prev and d_c_bar
        [batch, cell_size] and d_r_bar_u_bar [batch, 2 * cell_size], or None.

    Returns:
      The gradients with respect to the ten inputs. That of x, b_ru and b_c is None: the op does not
      use their values.
    """

    def block_cell_grad(*tensors):
        return _block_cell_grad(tensors[:6], tensors[6:9], (None, None, None, tensors[9]))

    return partial_gradients(block_cell_grad, op.inputs, incoming)


def _block_cell_grad(inputs, outputs, incoming):
    """`GRUBlockCellGrad` in differentiable ops, for gradients of all outputs; None counts as 0."""
    x, h_prev, w_ru, w_c = inputs[:4]
    input_size = tf.shape(x)[1]
    weights = w_ru[input_size:], w_c[input_size:]
    r, u, c = outputs
    d_r, d_u, d_c, d_h = (0.0 if gradient is None else gradient for gradient in incoming)
    d_h_prev, d_c_bar, d_r_bar_u_bar, _ = step_gradients(
        False, h_prev, weights, (r, u, c, None), (d_r, d_u, d_c, 0.0, d_h)
    )
    d_x = product(d_c_bar, w_c[:input_size], transpose_b=True)
    d_x += product(d_r_bar_u_bar, w_ru[:input_size], transpose_b=True)
    return d_x, d_h_prev, d_c_bar, d_r_bar_u_bar


def step_gradients(reset_after, h_prev, weights, outputs, incoming):
    """One step of a GRU backwards, without what depends on x.

    With w_ru and w_c the rows for the state, hc the state's share in the candidate after the reset
    gate (`reset_after` false: r*h_prev, true: h_prev @ w_c + b_hc), d_hc here what arrives there::

        d_c_bar = (d_h*(1-u) + d_c) * (1-c*c)
        d_u_bar = (d_h*(h_prev-c) + d_u) * u*(1-u)

        reset_after = false                              reset_after = true
        d_hc'    = d_c_bar @ w_c^T + d_hc                d_hc'    = d_c_bar*r + d_hc
        d_r_bar  = (d_hc'*h_prev + d_r) * r*(1-r)        d_r_bar  = (d_c_bar*hc + d_r) * r*(1-r)
        d_state  = d_hc'*r                               d_state  = d_hc' @ w_c^T

        d_h_prev = d_h*u + d_state + [d_r_bar | d_u_bar] @ w_ru^T

    Args:
      reset_after: Which of the two conventions.
      h_prev: The state before the step [batch, cell_size].
      weights: w_ru [cell_size, 2 * cell_size] and w_c [cell_size, cell_size].
      outputs: r, u, c and hc of the step [batch, cell_size]; hc is used with `reset_after` only.
      incoming: d_r, d_u, d_c, d_hc and d_h: tensors of that shape, or numbers.

    Returns:
      d_h_prev, d_c_bar, [d_r_bar | d_u_bar] and d_hc'.
    """
    w_ru, w_c = weights
    r, u, c, hc = outputs
    d_r, d_u, d_c, d_hc, d_h = incoming
    d_c_bar = (d_h * (1 - u) + d_c) * (1 - c * c)
    d_u_bar = (d_h * (h_prev - c) + d_u) * u * (1 - u)
    if reset_after:
        d_hc = d_c_bar * r + d_hc
        d_r_bar = (d_c_bar * hc + d_r) * r * (1 - r)
        d_state = product(d_hc, w_c, transpose_b=True)
    else:
        d_hc = product(d_c_bar, w_c, transpose_b=True) + d_hc
        d_r_bar = (d_hc * h_prev + d_r) * r * (1 - r)
        d_state = d_hc * r
    d_r_bar_u_bar = tf.concat([d_r_bar, d_u_bar], axis=1)
    d_h_prev = d_h * u + d_state + product(d_r_bar_u_bar, w_ru, transpose_b=True)
    return d_h_prev, d_c_bar, d_r_bar_u_bar, d_hc
