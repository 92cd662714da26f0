"""The gradients of `BlockGRU` and `BlockGRUGrad`, the library's own ops."""

import tensorflow as tf

from blockcell.gradients import time_loop
from blockcell.gradients.arithmetic import product, sum_rows, wide
from blockcell.gradients.gru import step_gradients
from blockcell.gradients.incoming import or_zeros, present
from blockcell.gradients.partial import partial_gradients

_INPUTS = ("sequence_length", "x", "h_prev", "w_ru", "w_c", "b_ru", "b_c", "b_hc")
_OUTPUTS = ("r", "u", "c", "hc", "h")  # Those that the gradient op takes.


def block_gru_gradient(module, op, *incoming):
    """Gradient of `BlockGRU` with respect to all of its inputs but sequence_length.

    For row b the steps t = sequence_length[b]-1 .. 0 backwards, with w[:D] and w[D:] the rows of a
    weight matrix for x and for the state, and h' the state before the step (h[t-1], or h_prev for
    t = 0). The carry starts as d_h_last. With d_h = (what arrives at h[t]) + carry::

        d_c_bar = (d_h*(1-u) + d_c) * (1-c*c)
        d_u_bar = (d_h*(h'-c) + d_u) * u*(1-u)

        reset_after = false                              reset_after = true
        d_hc'   = d_c_bar @ w_c[D:]^T + d_hc             d_hc'   = d_c_bar*r + d_hc
        d_r_bar = (d_hc'*h' + d_r) * r*(1-r)             d_r_bar = (d_c_bar*hc + d_r) * r*(1-r)
        d_state = d_hc'*r                                d_state = d_hc' @ w_c[D:]^T
        d_w_c[D:] += hc^T @ d_c_bar                      d_w_c[D:] += h'^T @ d_hc'
        d_b_hc = 0                                       d_b_hc += sum d_hc'

        d_bar   = [d_r_bar | d_u_bar]
        carry   = d_h*u + d_state + d_bar @ w_ru[D:]^T
        x_grad[t] = d_c_bar @ w_c[:D]^T + d_bar @ w_ru[:D]^T
        d_w_ru += [x[t] | h']^T @ d_bar ;     d_b_ru += sum d_bar        (sums over the batch)
        d_w_c[:D] += x[t]^T @ d_c_bar ;       d_b_c += sum d_c_bar

    The gradient of h_prev is the carry that leaves step 0. Steps from sequence_length[b] on do not
    count, whatever arrives there, and their x_grad is 0.

    `BlockGRUGrad` computes it if gradients arrive at h and h_last only. If any arrives at r, u, c
    or hc, all of it is computed by stock ops, in a loop over time.

    Args:
      module: The library's ops, as `tf.load_op_library` returns them.
      op: The `BlockGRU` node: inputs sequence_length [batch], int64, x [time, batch, input_size],
        h_prev [batch, cell_size], w_ru [input_size + cell_size, 2 * cell_size],
        w_c [input_size + cell_size, cell_size], b_ru [2 * cell_size], b_c and b_hc [cell_size];
        float32 or half.
      *incoming: Gradients with respect to the outputs r, u, c, hc, h [time, batch, cell_size] and
        h_last [batch, cell_size], or None.

    Returns:
      None for sequence_length, then the gradients with respect to the other seven inputs, in their
      order and of their shapes.
    """
    inputs, outputs = list(op.inputs), list(op.outputs)
    reset_after = op.get_attr("reset_after")
    incoming = [present(gradient) for gradient in incoming]
    if all(gradient is None for gradient in incoming[:4]):
        h_grad, h_last_grad = (or_zeros(incoming[k], outputs[k]) for k in (4, 5))
        named = dict(zip(_INPUTS + _OUTPUTS, inputs + outputs[:5]))
        grads = module.block_gru_grad(
            h_grad=h_grad, h_last_grad=h_last_grad, reset_after=reset_after, **named
        )
    else:
        grads = _block_gru_grad(reset_after, inputs[0], inputs[1:], outputs[:5], incoming)
    return [None] + list(grads)


def block_gru_grad_gradient(op, *incoming):
    """Gradient of `BlockGRUGrad`, for second derivatives.

    The op's equations are those of `block_gru_gradient`, with gradients of h and h_last alone. All
    inputs but sequence_length count as independent of each other, r to h too: what they depend on
    is for the gradient of `BlockGRU`, which made them, to say.

    Args:
      op: The `BlockGRUGrad` node: inputs sequence_length, x, h_prev, w_ru, w_c, b_ru, b_c, b_hc as
        of `BlockGRU`, r, u, c, hc, h and h_grad [time, batch, cell_size], h_last_grad
        [batch, cell_size]; float32 or half, which is computed in float32.
      *incoming: Gradients with respect to its outputs x_grad, h_prev_grad, w_ru_grad, w_c_grad,
        b_ru_grad, b_c_grad and b_hc_grad, of the shapes of those inputs, or None.

    Returns:
      None for sequence_length, then the gradients with respect to the other fourteen inputs; None
      for those whose values the op does not use.
    """
    sequence_length, reset_after = op.inputs[0], op.get_attr("reset_after")

    def block_gru_grad(*tensors):
        inputs, outputs, (h_grad, h_last_grad) = tensors[:7], tensors[7:12], tensors[12:]
        incoming = (None, None, None, None, h_grad, h_last_grad)
        return _block_gru_grad(reset_after, sequence_length, inputs, outputs, incoming)

    return [None] + partial_gradients(block_gru_grad, op.inputs[1:], incoming)


def _block_gru_grad(reset_after, sequence_length, inputs, outputs, incoming):
    """`BlockGRUGrad` in differentiable ops, for gradients of all outputs; None counts as 0."""
    dtype = inputs[0].dtype
    x, h_prev, w_ru, w_c, _, _, b_hc = (wide(tensor) for tensor in inputs)
    mask = tf.transpose(tf.sequence_mask(sequence_length, tf.shape(x)[0]))
    x = _masked(mask, x)
    outputs = [_masked(mask, wide(tensor)) for tensor in outputs]
    *incoming, h_last_grad = (None if grad is None else wide(grad) for grad in incoming)
    incoming = [None if gradient is None else _masked(mask, gradient) for gradient in incoming]
    hc = outputs[3]
    h_before = _masked(mask, time_loop.before(h_prev, outputs[4]))
    input_size, cell_size = tf.shape(x)[2], tf.shape(h_prev)[1]
    valid = tf.cast(_broadcast(mask, hc), tf.float32)
    weights = w_ru[input_size:], w_c[input_size:]

    def step(carry, rows):
        (h_before, valid), outputs, incoming = rows[:2], rows[2:6], rows[6:]
        incoming[4] += carry[0] * valid
        d_h_prev, d_c_bar, d_bar, d_hc = step_gradients(
            reset_after, h_before, weights, outputs, incoming
        )
        carry = d_h_prev + carry[0] * (1 - valid)
        return [carry], tf.concat([d_bar, d_c_bar, d_hc], axis=1)

    (h_prev_grad,), results = time_loop.backwards(
        step,
        [or_zeros(h_last_grad, h_prev)],
        [h_before, valid] + outputs[:4] + incoming,
    )
    d_bar, d_c_bar, d_hc = tf.split(
        time_loop.rows(results), [2 * cell_size, cell_size, cell_size], axis=1
    )

    x_grad = product(d_c_bar, w_c[:input_size], transpose_b=True)
    x_grad += product(d_bar, w_ru[:input_size], transpose_b=True)
    x_grad = tf.reshape(x_grad, tf.shape(x))
    x, h_before, hc = (time_loop.rows(sequence) for sequence in (x, h_before, hc))
    w_ru_grad = product(tf.concat([x, h_before], axis=1), d_bar, transpose_a=True)
    state, d_state = (h_before, d_hc) if reset_after else (hc, d_c_bar)
    w_c_grad = tf.concat(
        [product(x, d_c_bar, transpose_a=True), product(state, d_state, transpose_a=True)], axis=0
    )
    b_hc_grad = sum_rows(d_hc) if reset_after else tf.zeros_like(b_hc)
    grads = [x_grad, h_prev_grad, w_ru_grad, w_c_grad, sum_rows(d_bar), sum_rows(d_c_bar)]
    return [tf.cast(tensor, dtype) for tensor in grads + [b_hc_grad]]


def _broadcast(mask, sequence):
    """A mask [time, batch] as one of the shape of a sequence [time, batch, size]."""
    return tf.broadcast_to(tf.expand_dims(mask, 2), tf.shape(sequence))


def _masked(mask, sequence):
    """A sequence [time, batch, size] with zeros where the mask is false, even in place of NaN."""
    return tf.compat.v1.where(_broadcast(mask, sequence), sequence, tf.zeros_like(sequence))
