"""The gradients of a step of a GRU, of `GRUBlockCell` and of `BlockGRU`, in differentiable ops.

docs/ops.md has the equations, without the gradients that arrive at r, u, c and hc. These are added
to what flows there from h.
"""

from typing import Container, List, Tuple

import tensorflow as tf

from blockcell.gradients import functions as functions_of_cells
from blockcell.gradients import time_loop
from blockcell.gradients.arithmetic import bias_gradient, product, weight_gradient
from blockcell.gradients.forward_call import Call, Incoming, Tensors, or_zeros

_SAVED = ("r", "u", "c", "hc")
"""The outputs of a step that its gradient needs."""


def step_gradients(
    reset_after: bool,
    h_prev: tf.Tensor,
    state_weights: Tuple[tf.Tensor, tf.Tensor],
    outputs: Tensors,
    incoming: Incoming,
    functions: Tuple[str, str] = ("tanh", "sigmoid"),
) -> Tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
    """One step of a GRU backwards, without what depends on x: `BlockGRUGrad` in docs/ops.md.

    Args:
      reset_after: Which of the two conventions.
      h_prev: The state before the step [batch, cell_size].
      state_weights: The rows of w_ru [cell_size, 2 * cell_size] and of w_c [cell_size, cell_size]
        that multiply the state.
      outputs: r, u, c and, with `reset_after`, hc of the step [batch, cell_size].
      incoming: Gradients with respect to r, u, c, hc and h: tensors of that shape.
      functions: The names of the function of the candidate, and of that of the gates.

    Returns:
      d_h_prev, d_c_bar and d_hc [batch, cell_size], and d_r_bar_u_bar [batch, 2 * cell_size].
    """
    w_ru, w_c = state_weights
    r, u, c = (outputs[name] for name in ("r", "u", "c"))
    d_h, through = incoming["h"], functions_of_cells.through(functions)
    d_c_bar = through.state(d_h * (1 - u) + incoming["c"], c)
    d_u_bar = through.gate(d_h * (h_prev - c) + incoming["u"], u)
    if reset_after:
        d_hc = d_c_bar * r + incoming["hc"]
        d_r_bar = through.gate(d_c_bar * outputs["hc"] + incoming["r"], r)
        d_state = product(d_hc, w_c, transpose_b=True)
    else:
        d_hc = product(d_c_bar, w_c, transpose_b=True) + incoming["hc"]
        d_r_bar = through.gate(d_hc * h_prev + incoming["r"], r)
        d_state = d_hc * r
    d_r_bar_u_bar = tf.concat([d_r_bar, d_u_bar], axis=1)
    d_h_prev = d_h * u + d_state + product(d_r_bar_u_bar, w_ru, transpose_b=True)
    return d_h_prev, d_c_bar, d_hc, d_r_bar_u_bar


def cell_grad(call: Call) -> Tensors:
    """The outputs of `GRUBlockCellGrad`, for gradients that arrive at any output."""
    w_ru, w_c = call.inputs["w_ru"], call.inputs["w_c"]
    input_size = tf.shape(call.inputs["x"])[1]
    d_h_prev, d_c_bar, _, d_r_bar_u_bar = step_gradients(
        False,
        call.inputs["h_prev"],
        (w_ru[input_size:], w_c[input_size:]),
        call.outputs,
        call.incoming,
    )
    return {
        "d_x": _input_gradient(d_c_bar, d_r_bar_u_bar, w_c, w_ru, input_size),
        "d_h_prev": d_h_prev,
        "d_c_bar": d_c_bar,
        "d_r_bar_u_bar": d_r_bar_u_bar,
    }


def _input_gradient(
    d_c_bar: tf.Tensor, d_bar: tf.Tensor, w_c: tf.Tensor, w_ru: tf.Tensor, input_size: tf.Tensor
) -> tf.Tensor:
    """The gradient with respect to the rows of x."""
    from_c = product(d_c_bar, w_c[:input_size], transpose_b=True)
    return from_c + product(d_bar, w_ru[:input_size], transpose_b=True)


def cell_inputs(call: Call, grads: Tensors, skip: Container[str]) -> Tensors:
    """The gradients with respect to all inputs of `GRUBlockCell`, as `rules.Rule` says."""
    x, h_prev, r = call.inputs["x"], call.inputs["h_prev"], call.outputs["r"]
    d_c_bar, d_r_bar_u_bar = grads["d_c_bar"], grads["d_r_bar_u_bar"]
    found = {
        "x": grads["d_x"],
        "h_prev": grads["d_h_prev"],
        "b_ru": bias_gradient(d_r_bar_u_bar),
        "b_c": bias_gradient(d_c_bar),
    }
    if "w_ru" not in skip:
        found["w_ru"] = weight_gradient([x, h_prev], d_r_bar_u_bar)
    if "w_c" not in skip:
        found["w_c"] = weight_gradient([x, r * h_prev], d_c_bar)
    return found


def block_gru_grad(call: Call) -> Tensors:
    """The outputs of `BlockGRUGrad`, for gradients that arrive at any output.

    Steps from sequence_length[b] on do not count for row b, whatever arrives there, and their
    x_grad is 0.
    """
    inputs = call.inputs
    h_prev, w_ru, w_c = inputs["h_prev"], inputs["w_ru"], inputs["w_c"]
    mask = time_loop.row_mask(inputs["sequence_length"], inputs["x"])
    x = time_loop.masked(mask, inputs["x"])
    outputs = {name: time_loop.masked(mask, call.outputs[name]) for name in (*_SAVED, "h")}
    incoming = dict(call.incoming)
    h_last_grad = or_zeros(incoming.pop("h_last", None), h_prev)
    incoming = {name: time_loop.masked(mask, gradient) for name, gradient in incoming.items()}
    h_before = time_loop.masked(mask, time_loop.before(h_prev, outputs["h"]))
    input_size, cell_size = tf.shape(x)[2], tf.shape(h_prev)[1]
    valid = tf.cast(time_loop.broadcast(mask, outputs["hc"]), tf.float32)
    state_weights = w_ru[input_size:], w_c[input_size:]

    def step(
        carry: List[tf.Tensor], rows: Tensors, arrived: Incoming
    ) -> Tuple[List[tf.Tensor], tf.Tensor]:
        arrived["h"] += carry[0] * rows["valid"]
        d_h_prev, d_c_bar, d_hc, d_bar = step_gradients(
            call.switch, rows["h_before"], state_weights, rows, arrived, call.functions
        )
        h_prev_grad = d_h_prev + carry[0] * (1 - rows["valid"])
        return [h_prev_grad], tf.concat([d_bar, d_c_bar, d_hc], axis=1)

    sequences = {name: outputs[name] for name in _SAVED}
    (h_prev_grad,), results = time_loop.backwards(
        step, [h_last_grad], dict(sequences, h_before=h_before, valid=valid), incoming
    )
    d_bar, d_c_bar, d_hc = tf.split(
        time_loop.rows(results), [2 * cell_size, cell_size, cell_size], axis=1
    )

    x_grad = tf.reshape(_input_gradient(d_c_bar, d_bar, w_c, w_ru, input_size), tf.shape(x))
    x, h_before, hc = (time_loop.rows(sequence) for sequence in (x, h_before, outputs["hc"]))
    state, d_state = (h_before, d_hc) if call.switch else (hc, d_c_bar)
    w_c_grad = [weight_gradient([x], d_c_bar), weight_gradient([state], d_state)]
    return {
        "x_grad": x_grad,
        "h_prev_grad": h_prev_grad,
        "w_ru_grad": weight_gradient([x, h_before], d_bar),
        "w_c_grad": tf.concat(w_c_grad, axis=0),
        "b_ru_grad": bias_gradient(d_bar),
        "b_c_grad": bias_gradient(d_c_bar),
        "b_hc_grad": bias_gradient(d_hc) if call.switch else tf.zeros_like(inputs["b_hc"]),
    }
