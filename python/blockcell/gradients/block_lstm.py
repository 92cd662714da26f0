"""The gradients of `BlockLSTM`, `BlockLSTMV2`, `BlockLSTMGrad` and `BlockLSTMGradV2`."""

import tensorflow as tf

from blockcell.gradients import time_loop
from blockcell.gradients.arithmetic import product, sum_rows, wide
from blockcell.gradients.incoming import or_zeros, present
from blockcell.gradients.lstm import only_states, peephole_gradients, step_gradients
from blockcell.gradients.partial import partial_gradients

_INPUTS = ("seq_len_max", "x", "cs_prev", "h_prev", "w", "wci", "wcf", "wco", "b")
_OUTPUTS = ("i", "cs", "f", "o", "ci", "co", "h")


def block_lstm_gradient(op, *incoming):
    """Gradient of `BlockLSTM` with respect to all of its inputs but seq_len_max.

    For t = seq_len_max-1 .. 0 the equations of `lstm_block_cell_gradient`, with cs[t-1] and h[t-1]
    as cs_prev and h_prev (the inputs for t = 0), and with the gradients that step t+1 returns for
    its cs_prev and h_prev added to those that arrive at cs[t] and h[t]. The gradients of the
    weights and of b are sums over all steps. Clipping counts as the identity. Steps from
    seq_len_max on are not computed by the op: gradients that arrive there do not count, and their
    x_grad is 0.

    `BlockLSTMGrad` computes it if gradients arrive at cs and h only. If any arrives at another
    output, all of it is computed by stock ops, in a loop over time.

    Args:
      op: The `BlockLSTM` node: inputs seq_len_max [], int64, x [time, batch, input_size], cs_prev
        and h_prev [batch, cell_size], w [input_size + cell_size, 4 * cell_size], wci, wcf and wco
        [cell_size], b [4 * cell_size]; float32 or half. The columns of w and b are in the order
        input gate, cell input, forget gate, output gate.
      *incoming: Gradients with respect to the outputs i, cs, f, o, ci, co and h
        [time, batch, cell_size], or None.

    Returns:
      None for seq_len_max, then the gradients with respect to the other eight inputs, in their
      order and of their shapes.
    """
    return _gradient("ICFO", tf.raw_ops.BlockLSTMGrad, op, incoming)


def block_lstm_v2_gradient(op, *incoming):
    """Gradient of `BlockLSTMV2`.

    As `block_lstm_gradient`, except that the columns of w and b are in the order input gate, forget
    gate, cell input, output gate, and that the kernel is `BlockLSTMGradV2`. The gradient that
    TensorFlow registers calls `BlockLSTMGrad`, and is wrong for the order of the columns.

    Args:
      op: The `BlockLSTMV2` node, with inputs as those of `BlockLSTM`.
      *incoming: Gradients with respect to its seven outputs, or None.

    Returns:
      None for seq_len_max, then the gradients with respect to the other eight inputs.
    """
    return _gradient("IFCO", tf.raw_ops.BlockLSTMGradV2, op, incoming)


def block_lstm_grad_gradient(op, *incoming):
    """Gradient of `BlockLSTMGrad`, for second derivatives.

    The op's equations are those of `block_lstm_gradient`, with gradients of cs and h alone. All
    inputs but seq_len_max count as independent of each other, i to h too: what they depend on is
    for the gradient of `BlockLSTM`, which made them, to say.

    Args:
      op: The `BlockLSTMGrad` node: inputs seq_len_max, x, cs_prev, h_prev, w, wci, wcf, wco, b as
        of `BlockLSTM`, i, cs, f, o, ci, co, h, cs_grad and h_grad [time, batch, cell_size];
        float32 or half, which is computed in float32.
      *incoming: Gradients with respect to its outputs x_grad, cs_prev_grad, h_prev_grad, w_grad,
        wci_grad, wcf_grad, wco_grad and b_grad, of the shapes of those inputs, or None.

    Returns:
      None for seq_len_max, then the gradients with respect to the other seventeen inputs; None for
      those whose values the op does not use.
    """
    return _gradient_of_gradient("ICFO", op, incoming)


def block_lstm_grad_v2_gradient(op, *incoming):
    """Gradient of `BlockLSTMGradV2`: as `block_lstm_grad_gradient`, for `BlockLSTMV2`."""
    return _gradient_of_gradient("IFCO", op, incoming)


def _gradient(layout, kernel, op, incoming):
    inputs, outputs = list(op.inputs), list(op.outputs)
    use_peephole = op.get_attr("use_peephole")
    incoming = [present(gradient) for gradient in incoming]
    if only_states(incoming):
        cs_grad, h_grad = (or_zeros(incoming[k], outputs[k]) for k in (1, 6))
        named = dict(zip(_INPUTS + _OUTPUTS, inputs + outputs))
        grads = kernel(cs_grad=cs_grad, h_grad=h_grad, use_peephole=use_peephole, **named)
    else:
        grads = _block_lstm_grad(layout, use_peephole, inputs[0], inputs[1:], outputs, incoming)
    return [None] + list(grads)


def _gradient_of_gradient(layout, op, incoming):
    seq_len_max, use_peephole = op.inputs[0], op.get_attr("use_peephole")

    def block_lstm_grad(*tensors):
        inputs, outputs, (cs_grad, h_grad) = tensors[:8], tensors[8:15], tensors[15:]
        incoming = (None, cs_grad, None, None, None, None, h_grad)
        return _block_lstm_grad(layout, use_peephole, seq_len_max, inputs, outputs, incoming)

    return [None] + partial_gradients(block_lstm_grad, op.inputs[1:], incoming)


def _block_lstm_grad(layout, use_peephole, seq_len_max, inputs, outputs, incoming):
    """`BlockLSTMGrad[V2]` in differentiable ops, for gradients of all outputs; None counts as 0."""
    dtype = inputs[0].dtype
    x, cs_prev, h_prev, w = (wide(tensor) for tensor in inputs[:4])
    # Not the inputs themselves: if the op is in a loop of TensorFlow 1, the loop over time here
    # cannot get at what is outside of the gradient of that loop.
    wci, wcf, wco = (tf.identity(wide(tensor)) for tensor in inputs[4:7])
    length = tf.reshape(tf.cast(seq_len_max, tf.int32), [])
    i, cs, f, o, ci, co, h = (wide(tensor[:length]) for tensor in outputs)
    incoming = [None if gradient is None else wide(gradient[:length]) for gradient in incoming]
    cs_before, h_before = time_loop.before(cs_prev, cs), time_loop.before(h_prev, h)
    input_size, time = tf.shape(x)[2], tf.shape(x)[0]
    x, w_x, w_h = x[:length], w[:input_size], w[input_size:]

    def step(carry, rows):
        outputs, cs_before, incoming = rows[:6], rows[6], rows[7:]
        incoming[1] += carry[0]
        incoming[6] += carry[1]
        cs_prev_grad, gates = step_gradients(
            use_peephole, cs_before, (wci, wcf, wco), outputs, incoming
        )
        d_bar = _join(layout, gates)
        return (cs_prev_grad, product(d_bar, w_h, transpose_b=True)), d_bar

    (cs_prev_grad, h_prev_grad), d_bar = time_loop.backwards(
        step,
        [tf.zeros_like(cs_prev), tf.zeros_like(h_prev)],
        [i, cs, f, o, ci, co, cs_before] + incoming,
    )

    d_bar = time_loop.rows(d_bar)
    x_grad = tf.reshape(product(d_bar, w_x, transpose_b=True), tf.shape(x))
    x_grad = tf.pad(x_grad, [[0, time - length], [0, 0], [0, 0]])
    xh = tf.concat([time_loop.rows(x), time_loop.rows(h_before)], axis=1)
    w_grad = product(xh, d_bar, transpose_a=True)
    vectors = peephole_gradients(
        use_peephole,
        (wci, wcf, wco),
        time_loop.rows(cs_before),
        time_loop.rows(cs),
        _split(layout, d_bar),
    )
    grads = [x_grad, cs_prev_grad, h_prev_grad, w_grad] + vectors + [sum_rows(d_bar)]
    return [tf.cast(tensor, dtype) for tensor in grads]


def _join(layout, gates):
    """The columns of d_bar in the order of the op, from di, dci, df and do."""
    return tf.concat([gates["ICFO".index(gate)] for gate in layout], axis=1)


def _split(layout, d_bar):
    """The inverse of `_join`."""
    blocks = tf.split(d_bar, 4, axis=1)
    return [blocks[layout.index(gate)] for gate in "ICFO"]
