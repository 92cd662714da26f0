"""The gradient of a step of an LSTM, and of `LSTMBlockCell`, in differentiable ops.

docs/ops.md has the equations, without the gradients that arrive at i, f, o, ci and co. These are
added to what flows there from cs and h. Clipping counts as the identity.
"""

from typing import Container, NamedTuple

import tensorflow as tf

from blockcell.gradients.arithmetic import bias_gradient, input_gradients, weight_gradient, wide
from blockcell.gradients.forward_call import Call, Tensors
from blockcell.op_table import PEEPHOLES

SAVED = ("i", "cs", "f", "o", "ci", "co")
"""The outputs of a step that its gradient needs."""


class StepGradients(NamedTuple):
    """What a step of an LSTM backwards computes, all of it [batch, cell_size]."""

    cs_prev: tf.Tensor
    i: tf.Tensor
    ci: tf.Tensor
    f: tf.Tensor
    o: tf.Tensor


def step_gradients(
    use_peephole: bool,
    cs_prev: tf.Tensor,
    peepholes: Tensors,
    outputs: Tensors,
    incoming: Tensors,
) -> StepGradients:
    """One step of an LSTM backwards, up to the gates: `LSTMBlockCellGrad` in docs/ops.md.

    Args:
      use_peephole: Whether the terms with peephole weights exist.
      cs_prev: The cell state before the step [batch, cell_size].
      peepholes: wci, wcf and wco [cell_size].
      outputs: i, f, o, ci and co of the step [batch, cell_size].
      incoming: Gradients with respect to these, cs and h: tensors of that shape, or numbers.
    """
    i, f, o, ci, co = (outputs[name] for name in ("i", "f", "o", "ci", "co"))
    h_grad = incoming["h"]
    do = (h_grad * co + incoming["o"]) * o * (1 - o)
    dcs = incoming["cs"] + (h_grad * o + incoming["co"]) * (1 - co * co)
    if use_peephole:
        dcs += do * peepholes["wco"]
    di = (dcs * ci + incoming["i"]) * i * (1 - i)
    dci = (dcs * i + incoming["ci"]) * (1 - ci * ci)
    df = (dcs * cs_prev + incoming["f"]) * f * (1 - f)
    cs_prev_grad = dcs * f
    if use_peephole:
        cs_prev_grad += di * peepholes["wci"] + df * peepholes["wcf"]
    return StepGradients(cs_prev_grad, di, dci, df, do)


def peephole_gradients(
    use_peephole: bool,
    peepholes: Tensors,
    cs_prev: tf.Tensor,
    cs: tf.Tensor,
    gates: Tensors,
) -> Tensors:
    """wci_grad, wcf_grad and wco_grad, from the rows of cs_prev, cs and of the gates' gradients.

    Without peepholes the vectors may be of any length; their gradients are zeros of that length.

    Args:
      use_peephole: Whether the op has peepholes.
      peepholes: wci, wcf and wco.
      cs_prev: The cell states before the steps [rows, cell_size].
      cs: Those after the steps.
      gates: The gradients of what enters the gates i, f and o [rows, cell_size].
    """
    if not use_peephole:
        return {name + "_grad": tf.zeros_like(peepholes[name]) for name in PEEPHOLES}
    return {
        "wci_grad": bias_gradient(gates["i"] * cs_prev),
        "wcf_grad": bias_gradient(gates["f"] * cs_prev),
        "wco_grad": bias_gradient(gates["o"] * cs),
    }


def cell_grad(call: Call) -> Tensors:
    """The outputs of `LSTMBlockCellGrad`, for gradients that arrive at any output."""
    dtype = call.inputs["x"].dtype
    cs_prev = wide(call.inputs["cs_prev"])
    peepholes = {name: wide(call.inputs[name]) for name in PEEPHOLES}
    outputs = {name: wide(call.outputs[name]) for name in SAVED}
    incoming = {name: wide(gradient) for name, gradient in call.incoming.items()}
    step = step_gradients(
        call.switch,
        cs_prev,
        peepholes,
        outputs,
        call._replace(incoming=incoming).gradients(*SAVED, "h"),
    )
    grads = {
        "cs_prev_grad": step.cs_prev,
        "dicfo": tf.concat([step.i, step.ci, step.f, step.o], axis=1),
    }
    grads.update(peephole_gradients(call.switch, peepholes, cs_prev, outputs["cs"], step._asdict()))
    return {name: tf.cast(tensor, dtype) for name, tensor in grads.items()}


def cell_inputs(call: Call, grads: Tensors, skip: Container[str]) -> Tensors:
    """The gradients with respect to all inputs of `LSTMBlockCell`.

    Args:
      call: The call of `LSTMBlockCell`.
      grads: The outputs of `LSTMBlockCellGrad`.
      skip: Inputs whose gradients nobody asks for.
    """
    x, dicfo = call.inputs["x"], grads["dicfo"]
    found = {name: grads[name + "_grad"] for name in ("cs_prev",) + PEEPHOLES}
    found["b"] = bias_gradient(dicfo)
    if "x" not in skip or "h_prev" not in skip:
        found["x"], found["h_prev"] = input_gradients(dicfo, call.inputs["w"], x)
    if "w" not in skip:
        found["w"] = weight_gradient([x, call.inputs["h_prev"]], dicfo)
    return found
