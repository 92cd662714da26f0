"""The gradient of `LSTMBlockCell`."""

import tensorflow as tf

from blockcell.gradients.incoming import present, product, skipped, sum_rows, wide


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

    All of it is linear in the incoming gradients. `LSTMBlockCellGrad` computes the share of
    `cs_grad` and `h_grad`; that of the others is computed by stock ops and added, if there is any.

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
    x, cs_prev, h_prev, w, wci, wcf, wco, b = op.inputs
    i, cs, f, o, ci, co, h = op.outputs
    use_peephole = op.get_attr("use_peephole")
    cs_grad, h_grad = present(cs_grad), present(h_grad)
    gates = [present(gradient) for gradient in (d_i, d_f, d_o, d_ci, d_co)]
    any_gate = any(gradient is not None for gradient in gates)

    shares = []
    if cs_grad is not None or h_grad is not None or not any_gate:
        shares.append(
            tf.raw_ops.LSTMBlockCellGrad(
                x=x,
                cs_prev=cs_prev,
                h_prev=h_prev,
                w=w,
                wci=wci,
                wcf=wcf,
                wco=wco,
                b=b,
                i=i,
                cs=cs,
                f=f,
                o=o,
                ci=ci,
                co=co,
                cs_grad=tf.zeros_like(h) if cs_grad is None else cs_grad,
                h_grad=tf.zeros_like(h) if h_grad is None else h_grad,
                use_peephole=use_peephole,
            )
        )
    if any_gate:
        gates = [tf.zeros_like(h) if gradient is None else gradient for gradient in gates]
        shares.append(_share_of_gates(op.inputs, op.outputs, use_peephole, *gates))
    cs_prev_grad, dicfo, wci_grad, wcf_grad, wco_grad = (
        share[0] if len(share) == 1 else tf.cast(wide(share[0]) + wide(share[1]), x.dtype)
        for share in zip(*shares)
    )

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


def _share_of_gates(inputs, outputs, use_peephole, d_i, d_f, d_o, d_ci, d_co):
    """What `LSTMBlockCellGrad` would return for gradients of the gates instead of cs and h.

    The equations of `lstm_block_cell_gradient` with cs_grad = h_grad = 0, rounded at the end.
    """
    dtype = d_i.dtype
    _, cs_prev, _, _, wci, wcf, wco, _ = (wide(tensor) for tensor in inputs)
    i, cs, f, o, ci, co, _ = (wide(tensor) for tensor in outputs)
    d_i, d_f, d_o, d_ci, d_co = (wide(gradient) for gradient in (d_i, d_f, d_o, d_ci, d_co))

    do = d_o * o * (1 - o)
    dcs = d_co * (1 - co * co)
    if use_peephole:
        dcs += do * wco
    di = (dcs * ci + d_i) * i * (1 - i)
    dci = (dcs * i + d_ci) * (1 - ci * ci)
    df = (dcs * cs_prev + d_f) * f * (1 - f)
    cs_prev_grad = dcs * f
    # Without peepholes the vectors may be of any length; their gradients are zeros of that length.
    weight_grads = [tf.zeros_like(weight) for weight in (wci, wcf, wco)]
    if use_peephole:
        cs_prev_grad += di * wci + df * wcf
        products = (di * cs_prev, df * cs_prev, do * cs)
        weight_grads = [tf.reduce_sum(rows, axis=0) for rows in products]
    share = [cs_prev_grad, tf.concat([di, dci, df, do], axis=1)] + weight_grads
    return [tf.cast(tensor, dtype) for tensor in share]
