"""The gradient of a step of a GRU, and of `GRUBlockCell`, in differentiable ops.

docs/ops.md has the equations, without the gradients that arrive at r, u, c and hc. These are added
to what flows there from h.
"""

from typing import Container, NamedTuple, Tuple

import tensorflow as tf

from blockcell.gradients.arithmetic import bias_gradient, product, weight_gradient
from blockcell.gradients.forward_call import Call, Tensors


class StepGradients(NamedTuple):
    """What a step of a GRU backwards computes, [batch, cell_size] but for d_r_bar_u_bar."""

    h_prev: tf.Tensor
    c_bar: tf.Tensor
    r_bar_u_bar: tf.Tensor
    """[batch, 2 * cell_size]."""
    hc: tf.Tensor


def step_gradients(
    reset_after: bool,
    h_prev: tf.Tensor,
    state_weights: Tuple[tf.Tensor, tf.Tensor],
    outputs: Tensors,
    incoming: Tensors,
) -> StepGradients:
    """One step of a GRU backwards, without what depends on x: `BlockGRUGrad` in docs/ops.md.

    Args:
      reset_after: Which of the two conventions.
      h_prev: The state before the step [batch, cell_size].
      state_weights: The rows of w_ru [cell_size, 2 * cell_size] and of w_c [cell_size, cell_size]
        that multiply the state.
      outputs: r, u, c and, with `reset_after`, hc of the step [batch, cell_size].
      incoming: Gradients with respect to r, u, c, hc and h: tensors of that shape, or numbers.
    """
    w_ru, w_c = state_weights
    r, u, c = (outputs[name] for name in ("r", "u", "c"))
    d_h = incoming["h"]
    d_c_bar = (d_h * (1 - u) + incoming["c"]) * (1 - c * c)
    d_u_bar = (d_h * (h_prev - c) + incoming["u"]) * u * (1 - u)
    if reset_after:
        d_hc = d_c_bar * r + incoming["hc"]
        d_r_bar = (d_c_bar * outputs["hc"] + incoming["r"]) * r * (1 - r)
        d_state = product(d_hc, w_c, transpose_b=True)
    else:
        d_hc = product(d_c_bar, w_c, transpose_b=True) + incoming["hc"]
        d_r_bar = (d_hc * h_prev + incoming["r"]) * r * (1 - r)
        d_state = d_hc * r
    d_r_bar_u_bar = tf.concat([d_r_bar, d_u_bar], axis=1)
    d_h_prev = d_h * u + d_state + product(d_r_bar_u_bar, w_ru, transpose_b=True)
    return StepGradients(d_h_prev, d_c_bar, d_r_bar_u_bar, d_hc)


def cell_grad(call: Call) -> Tensors:
    """The outputs of `GRUBlockCellGrad`, for gradients that arrive at any output."""
    w_ru, w_c = call.inputs["w_ru"], call.inputs["w_c"]
    input_size = tf.shape(call.inputs["x"])[1]
    step = step_gradients(
        False,
        call.inputs["h_prev"],
        (w_ru[input_size:], w_c[input_size:]),
        call.outputs,
        call.gradients("r", "u", "c", "hc", "h"),
    )
    d_x = product(step.c_bar, w_c[:input_size], transpose_b=True)
    d_x += product(step.r_bar_u_bar, w_ru[:input_size], transpose_b=True)
    return {
        "d_x": d_x,
        "d_h_prev": step.h_prev,
        "d_c_bar": step.c_bar,
        "d_r_bar_u_bar": step.r_bar_u_bar,
    }


def cell_inputs(call: Call, grads: Tensors, skip: Container[str]) -> Tensors:
    """The gradients with respect to all inputs of `GRUBlockCell`.

    Args:
      call: The call of `GRUBlockCell`.
      grads: The outputs of `GRUBlockCellGrad`.
      skip: Inputs whose gradients nobody asks for.
    """
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
