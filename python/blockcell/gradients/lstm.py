"""The gradients of `LSTMBlockCell` and `LSTMBlockCellGrad`."""

import tensorflow as tf

from blockcell.gradients.arithmetic import product, sum_rows, wide
from blockcell.gradients.incoming import or_zeros, present, skipped
from blockcell.gradients.partial import partial_gradients

_INPUTS = ("x", "cs_prev", "h_prev", "w", "wci", "wcf", "wco", "b")
_OUTPUTS = ("i", "cs", "f", "o", "ci", "co")  # Those that the gradient op takes.


def lstm_block_cell_gradient(op, d_i, cs_grad, d_f, d_o, d_ci, d_co, h_grad):
    r"""Gradient of `LSTMBlockCell` with respect to all of its inputs.

    The cell, with S the logistic function and P = 1 with `use_peephole`, otherwise 0::

        [i_bar | ci_bar | f_bar | o_bar] = [x | h_prev] @ w + b
        i  = S(i_bar + P*wci*cs_prev) ;  f = S(f_bar + forget_bias + P*wcf*cs_prev)
        ci = tanh(ci_bar) ;              cs = clip(i*ci + f*cs_prev)
        o  = S(o_bar + P*wco*cs) ;       co = tanh(cs) ;  h = o*co

    Its gradient is the chain rule applied to these, except that clipping counts as the identity, as
    in all of TensorFlow's LSTM gradients::

        do  = (h_grad*co + d_o) * o*(1-o)
        dcs = cs_grad + (h_grad*o + d_co)*(1-co*co) + P*do*wco
        di  = (dcs*ci + d_i) * i*(1-i)
        dci = (dcs*i + d_ci) * (1-ci*ci)
        df  = (dcs*cs_prev + d_f) * f*(1-f)
        dicfo        = [di | dci | df | do]
        cs_prev_grad = dcs*f + P*(di*wci + df*wcf)
        wci_grad = P*sum di*cs_prev ; wcf_grad = P*sum df*cs_prev ; wco_grad = P*sum do*cs
        [x_grad | h_prev_grad] = dicfo @ w^T
        w_grad = [x | h_prev]^T @ dicfo ;  b_grad = sum dicfo           (sums over the batch)

    `LSTMBlockCellGrad` computes the first half of it if gradients arrive at cs and h only. If any
    arrives at another output, all of it is computed by stock ops.

    Args:
      op: The `LSTMBlockCell` node: inputs x [batch, input_size], cs_prev and h_prev
        [batch, cell_size], w [input_size + cell_size, 4 * cell_size], wci, wcf and wco
        [cell_size], b [4 * cell_size]; float32 or half.
      d_i: Gradient with respect to the output i [batch, cell_size], or None.
      cs_grad: The same of cs.
      d_f: The same of f.
      d_o: The same of o.
      d_ci: The same of ci.
      d_co: The same of co.
      h_grad: The same of h.

    Returns:
      The gradients with respect to the eight inputs, in their order and of their shapes.
    """
    x, _, h_prev, w = op.inputs[:4]
    h, outputs = op.outputs[6], op.outputs[:6]
    use_peephole = op.get_attr("use_peephole")
    incoming = [present(grad) for grad in (d_i, cs_grad, d_f, d_o, d_ci, d_co, h_grad)]
    if only_states(incoming):
        named = dict(zip(_INPUTS + _OUTPUTS, list(op.inputs) + list(outputs)))
        cs_grad, h_grad = or_zeros(incoming[1], h), or_zeros(incoming[6], h)
        grads = tf.raw_ops.LSTMBlockCellGrad(
            cs_grad=cs_grad, h_grad=h_grad, use_peephole=use_peephole, **named
        )
    else:
        grads = _block_cell_grad(use_peephole, op.inputs, outputs, incoming)
    cs_prev_grad, dicfo, wci_grad, wcf_grad, wco_grad = grads

    skip = skipped(op)
    x_grad = h_prev_grad = w_grad = None
    if 0 not in skip or 2 not in skip:
        xh_grad = product(dicfo, w, transpose_b=True)
        input_size = tf.shape(x)[1]
        x_grad, h_prev_grad = xh_grad[:, :input_size], xh_grad[:, input_size:]
    if 3 not in skip:
        w_grad = product(tf.concat([x, h_prev], axis=1), dicfo, transpose_a=True)
    b_grad = sum_rows(dicfo)
    return x_grad, cs_prev_grad, h_prev_grad, w_grad, wci_grad, wcf_grad, wco_grad, b_grad


def lstm_block_cell_grad_gradient(op, *incoming):
    """Gradient of `LSTMBlockCellGrad`, for second derivatives.

    The op's equations are those of `lstm_block_cell_gradient` with d_i = d_f = d_o = d_ci = d_co =
    0. All sixteen inputs count as independent of each other, i to co too: what they depend on is
    for the gradient of `LSTMBlockCell`, which made them, to say.

    Args:
      op: The `LSTMBlockCellGrad` node: inputs x, cs_prev, h_prev, w, wci, wcf, wco, b as of
        `LSTMBlockCell`, i, cs, f, o, ci, co, cs_grad and h_grad [batch, cell_size]; float32 or
        half, which is computed in float32.
      *incoming: Gradients with respect to its outputs cs_prev_grad [batch, cell_size], dicfo
        [batch, 4 * cell_size], wci_grad, wcf_grad and wco_grad [cell_size], or None.

    Returns:
      The gradients with respect to the sixteen inputs; None for those whose values the op does not
      use: x, h_prev, w, b, and without `use_peephole` the peephole weights and cs.
    """
    use_peephole = op.get_attr("use_peephole")

    def block_cell_grad(*tensors):
        cs_grad, h_grad = tensors[14:]
        incoming = (None, cs_grad, None, None, None, None, h_grad)
        return _block_cell_grad(use_peephole, tensors[:8], tensors[8:14], incoming)

    return partial_gradients(block_cell_grad, op.inputs, incoming)


def only_states(incoming):
    """Whether the gradients of the seven outputs are None, but for those of cs and h."""
    return all(gradient is None for k, gradient in enumerate(incoming) if k not in (1, 6))


def _block_cell_grad(use_peephole, inputs, outputs, incoming):
    """`LSTMBlockCellGrad` in differentiable ops, for gradients of all outputs; None counts as 0."""
    dtype = inputs[0].dtype
    cs_prev, wci, wcf, wco = (wide(inputs[k]) for k in (1, 4, 5, 6))
    outputs = [wide(tensor) for tensor in outputs]
    incoming = [0.0 if gradient is None else wide(gradient) for gradient in incoming]
    cs_prev_grad, (di, dci, df, do) = step_gradients(
        use_peephole, cs_prev, (wci, wcf, wco), outputs, incoming
    )
    vectors = peephole_gradients(
        use_peephole, (wci, wcf, wco), cs_prev, outputs[1], (di, dci, df, do)
    )
    grads = [cs_prev_grad, tf.concat([di, dci, df, do], axis=1)] + vectors
    return [tf.cast(tensor, dtype) for tensor in grads]


def step_gradients(use_peephole, cs_prev, peepholes, outputs, incoming):
    """One step of an LSTM backwards, up to the gates: see `lstm_block_cell_gradient`.

    Args:
      use_peephole: P of the equations.
      cs_prev: The cell state before the step [batch, cell_size].
      peepholes: wci, wcf and wco [cell_size].
      outputs: i, cs, f, o, ci and co of the step [batch, cell_size].
      incoming: Gradients with respect to these and h: tensors of that shape, or numbers.

    Returns:
      cs_prev_grad, and a tuple of di, dci, df and do.
    """
    wci, wcf, wco = peepholes
    i, _, f, o, ci, co = outputs
    d_i, cs_grad, d_f, d_o, d_ci, d_co, h_grad = incoming
    do = (h_grad * co + d_o) * o * (1 - o)
    dcs = cs_grad + (h_grad * o + d_co) * (1 - co * co)
    if use_peephole:
        dcs += do * wco
    di = (dcs * ci + d_i) * i * (1 - i)
    dci = (dcs * i + d_ci) * (1 - ci * ci)
    df = (dcs * cs_prev + d_f) * f * (1 - f)
    cs_prev_grad = dcs * f
    if use_peephole:
        cs_prev_grad += di * wci + df * wcf
    return cs_prev_grad, (di, dci, df, do)


def peephole_gradients(use_peephole, peepholes, cs_prev, cs, gates):
    """Gradients of wci, wcf and wco, from the rows of cs_prev, cs and of di, dci, df and do.

    Without peepholes the vectors may be of any length; their gradients are zeros of that length.
    """
    if not use_peephole:
        return [tf.zeros_like(weight) for weight in peepholes]
    di, _, df, do = gates
    return [sum_rows(product) for product in (di * cs_prev, df * cs_prev, do * cs)]
