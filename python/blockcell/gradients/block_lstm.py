"""The gradients of `BlockLSTM` and `BlockLSTMV2` in differentiable ops."""

from typing import List, Sequence, Tuple

import tensorflow as tf

from blockcell.gradients import time_loop
from blockcell.gradients.arithmetic import bias_gradient, product, weight_gradient, wide
from blockcell.gradients.forward_call import Call, Tensors
from blockcell.gradients.lstm import SAVED, peephole_gradients, step_gradients
from blockcell.op_table import PEEPHOLES

ICFO, IFCO = ("i", "ci", "f", "o"), ("i", "f", "ci", "o")
"""The order of the gates in the columns of w and b: of `BlockLSTM` and of `BlockLSTMV2`."""


def block_lstm_grad(columns: Sequence[str], call: Call) -> Tensors:
    """The outputs of `BlockLSTMGrad[V2]`, for gradients that arrive at any output.

    Steps from seq_len_max on are not computed by the op. Gradients that arrive there do not count,
    and their x_grad is 0.

    Args:
      columns: `ICFO` or `IFCO`.
      call: The call of `BlockLSTM` or `BlockLSTMV2`.
    """
    inputs = call.inputs
    dtype = inputs["x"].dtype
    x, cs_prev, h_prev, w = (wide(inputs[name]) for name in ("x", "cs_prev", "h_prev", "w"))
    # Not the inputs themselves: if the op is in a loop of TensorFlow 1, the loop over time here
    # cannot get at what is outside of the gradient of that loop.
    peepholes = {name: tf.identity(wide(inputs[name])) for name in PEEPHOLES}
    length = tf.reshape(tf.cast(inputs["seq_len_max"], tf.int32), [])
    outputs = {name: wide(call.outputs[name][:length]) for name in SAVED + ("h",)}
    incoming = {name: wide(gradient[:length]) for name, gradient in call.incoming.items()}
    cs_before = time_loop.before(cs_prev, outputs["cs"])
    h_before = time_loop.before(h_prev, outputs["h"])
    input_size, time = tf.shape(x)[2], tf.shape(x)[0]
    x, w_x, w_h = x[:length], w[:input_size], w[input_size:]

    def step(carry: List[tf.Tensor], rows: time_loop.Rows) -> Tuple[List[tf.Tensor], tf.Tensor]:
        arrived = rows.incoming(SAVED + ("h",))
        arrived["cs"] += carry[0]
        arrived["h"] += carry[1]
        grads = step_gradients(call.switch, rows["cs_before"], peepholes, rows, arrived)
        d_bar = tf.concat([getattr(grads, gate) for gate in columns], axis=1)
        return [grads.cs_prev, product(d_bar, w_h, transpose_b=True)], d_bar

    sequences = {name: outputs[name] for name in SAVED}
    (cs_prev_grad, h_prev_grad), d_bar = time_loop.backwards(
        step,
        [tf.zeros_like(cs_prev), tf.zeros_like(h_prev)],
        dict(sequences, cs_before=cs_before),
        incoming,
    )

    d_bar = time_loop.rows(d_bar)
    x_grad = tf.reshape(product(d_bar, w_x, transpose_b=True), tf.shape(x))
    grads = {
        "x_grad": tf.pad(x_grad, [[0, time - length], [0, 0], [0, 0]]),
        "cs_prev_grad": cs_prev_grad,
        "h_prev_grad": h_prev_grad,
        "w_grad": weight_gradient([time_loop.rows(x), time_loop.rows(h_before)], d_bar),
        "b_grad": bias_gradient(d_bar),
    }
    grads.update(
        peephole_gradients(
            call.switch,
            peepholes,
            time_loop.rows(cs_before),
            time_loop.rows(outputs["cs"]),
            dict(zip(columns, tf.split(d_bar, 4, axis=1))),
        )
    )
    return {name: tf.cast(tensor, dtype) for name, tensor in grads.items()}
