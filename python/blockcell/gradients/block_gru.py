"""The gradient of `BlockGRU` in differentiable ops."""

from typing import List, Tuple

import tensorflow as tf

from blockcell.gradients import time_loop
from blockcell.gradients.arithmetic import bias_gradient, product, weight_gradient, wide
from blockcell.gradients.forward_call import Call, Tensors
from blockcell.gradients.gru import step_gradients
from blockcell.gradients.incoming import or_zeros

_STEPS = ("r", "u", "c", "hc")
_WEIGHTS = ("h_prev", "w_ru", "w_c", "b_hc")


def block_gru_grad(call: Call) -> Tensors:
    """The outputs of `BlockGRUGrad`, for gradients that arrive at any output.

    Steps from sequence_length[b] on do not count for row b, whatever arrives there, and their
    x_grad is 0.
    """
    dtype = call.inputs["x"].dtype
    x = wide(call.inputs["x"])
    h_prev, w_ru, w_c, b_hc = (wide(call.inputs[name]) for name in _WEIGHTS)
    mask = tf.transpose(tf.sequence_mask(call.inputs["sequence_length"], tf.shape(x)[0]))
    x = _masked(mask, x)
    outputs = {name: _masked(mask, wide(call.outputs[name])) for name in _STEPS + ("h",)}
    incoming = {name: wide(gradient) for name, gradient in call.incoming.items()}
    h_last_grad = or_zeros(incoming.pop("h_last", None), h_prev)
    incoming = {name: _masked(mask, gradient) for name, gradient in incoming.items()}
    h_before = _masked(mask, time_loop.before(h_prev, outputs["h"]))
    input_size, cell_size = tf.shape(x)[2], tf.shape(h_prev)[1]
    valid = tf.cast(_broadcast(mask, outputs["hc"]), tf.float32)
    state_weights = w_ru[input_size:], w_c[input_size:]

    def step(carry: List[tf.Tensor], rows: time_loop.Rows) -> Tuple[List[tf.Tensor], tf.Tensor]:
        arrived = rows.incoming(_STEPS + ("h",))
        arrived["h"] += carry[0] * rows["valid"]
        grads = step_gradients(call.switch, rows["h_before"], state_weights, rows, arrived)
        h_prev_grad = grads.h_prev + carry[0] * (1 - rows["valid"])
        return [h_prev_grad], tf.concat([grads.r_bar_u_bar, grads.c_bar, grads.hc], axis=1)

    sequences = {name: outputs[name] for name in _STEPS}
    (h_prev_grad,), results = time_loop.backwards(
        step, [h_last_grad], dict(sequences, h_before=h_before, valid=valid), incoming
    )
    d_bar, d_c_bar, d_hc = tf.split(
        time_loop.rows(results), [2 * cell_size, cell_size, cell_size], axis=1
    )

    x_grad = product(d_c_bar, w_c[:input_size], transpose_b=True)
    x_grad += product(d_bar, w_ru[:input_size], transpose_b=True)
    x_grad = tf.reshape(x_grad, tf.shape(x))
    x, h_before, hc = (time_loop.rows(sequence) for sequence in (x, h_before, outputs["hc"]))
    state, d_state = (h_before, d_hc) if call.switch else (hc, d_c_bar)
    w_c_grad = [weight_gradient([x], d_c_bar), weight_gradient([state], d_state)]
    grads = {
        "x_grad": x_grad,
        "h_prev_grad": h_prev_grad,
        "w_ru_grad": weight_gradient([x, h_before], d_bar),
        "w_c_grad": tf.concat(w_c_grad, axis=0),
        "b_ru_grad": bias_gradient(d_bar),
        "b_c_grad": bias_gradient(d_c_bar),
        "b_hc_grad": bias_gradient(d_hc) if call.switch else tf.zeros_like(b_hc),
    }
    return {name: tf.cast(tensor, dtype) for name, tensor in grads.items()}


def _broadcast(mask: tf.Tensor, sequence: tf.Tensor) -> tf.Tensor:
    """A mask [time, batch] as one of the shape of a sequence [time, batch, size]."""
    return tf.broadcast_to(tf.expand_dims(mask, 2), tf.shape(sequence))


def _masked(mask: tf.Tensor, sequence: tf.Tensor) -> tf.Tensor:
    """A sequence [time, batch, size] with zeros where the mask is false, even in place of NaN."""
    return tf.compat.v1.where(_broadcast(mask, sequence), sequence, tf.zeros_like(sequence))
