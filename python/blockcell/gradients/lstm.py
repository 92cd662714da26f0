"""The gradients of a step of an LSTM and of the LSTM ops, in differentiable ops.

docs/ops.md has the equations, without the gradients that arrive at i, f, o, ci and co. These are
added to what flows there from cs and h. Clipping counts as the identity.
"""

from typing import Container, List, Sequence, Tuple

import tensorflow as tf

from blockcell.gradients import functions as functions_of_cells
from blockcell.gradients import time_loop
from blockcell.gradients.arithmetic import (
    bias_gradient,
    input_gradients,
    product,
    weight_gradient,
)
from blockcell.gradients.forward_call import Call, Incoming, Tensors
from blockcell.op_table import PEEPHOLES

ICFO, IFCO = ("i", "ci", "f", "o"), ("i", "f", "ci", "o")
"""The order of the gates in the columns of w and b: of `BlockLSTM` and of `BlockLSTMV2`."""
_SAVED = ("i", "cs", "f", "o", "ci", "co")
"""The outputs of a step that its gradient needs."""


def step_gradients(
    use_peephole: bool,
    cs_prev: tf.Tensor,
    peepholes: Tensors,
    outputs: Tensors,
    incoming: Incoming,
    functions: Tuple[str, str] = ("tanh", "sigmoid"),
) -> Tuple[tf.Tensor, Tensors]:
    """One step of an LSTM backwards, up to the gates: `LSTMBlockCellGrad` in docs/ops.md.

    Args:
      use_peephole: Whether the terms with peephole weights exist.
      cs_prev: The cell state before the step [batch, cell_size].
      peepholes: wci, wcf and wco [cell_size].
      outputs: i, f, o, ci and co of the step [batch, cell_size].
      incoming: Gradients with respect to these, cs and h: tensors of that shape.
      functions: The names of the function of the state, and of that of the gates.

    Returns:
      The gradient with respect to cs_prev, and those with respect to what enters the gates i, ci, f
      and o, all of it [batch, cell_size].
    """
    i, f, o, ci, co = (outputs[name] for name in ("i", "f", "o", "ci", "co"))
    h_grad, through = incoming["h"], functions_of_cells.through(functions)
    do = through.gate(h_grad * co + incoming["o"], o)
    dcs = incoming["cs"] + through.state(h_grad * o + incoming["co"], co)
    if use_peephole:
        dcs += do * peepholes["wco"]
    di = through.gate(dcs * ci + incoming["i"], i)
    dci = through.state(dcs * i + incoming["ci"], ci)
    df = through.gate(dcs * cs_prev + incoming["f"], f)
    cs_prev_grad = dcs * f
    if use_peephole:
        cs_prev_grad += di * peepholes["wci"] + df * peepholes["wcf"]
    return cs_prev_grad, {"i": di, "ci": dci, "f": df, "o": do}


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
    cs_prev = call.inputs["cs_prev"]
    cs_prev_grad, gates = step_gradients(
        call.switch, cs_prev, call.inputs, call.outputs, call.incoming
    )
    return {
        "cs_prev_grad": cs_prev_grad,
        "dicfo": tf.concat([gates[gate] for gate in ICFO], axis=1),
        **peephole_gradients(call.switch, call.inputs, cs_prev, call.outputs["cs"], gates),
    }


def cell_inputs(call: Call, grads: Tensors, skip: Container[str]) -> Tensors:
    """The gradients with respect to all inputs of `LSTMBlockCell`, as `rules.Rule` says."""
    x, dicfo = call.inputs["x"], grads["dicfo"]
    found = {name: grads[name + "_grad"] for name in ("cs_prev",) + PEEPHOLES}
    found["b"] = bias_gradient(dicfo)
    if "x" not in skip or "h_prev" not in skip:
        found["x"], found["h_prev"] = input_gradients(dicfo, call.inputs["w"], x)
    if "w" not in skip:
        found["w"] = weight_gradient([x, call.inputs["h_prev"]], dicfo)
    return found


def block_lstm_grad(columns: Sequence[str], call: Call) -> Tensors:
    """The outputs of `BlockLSTMGrad[V2]`, for gradients that arrive at any output.

    Steps from seq_len_max on are not computed by the op. Gradients that arrive there do not count,
    and their x_grad is 0.

    Args:
      columns: `ICFO` or `IFCO`.
      call: The call of `BlockLSTM` or `BlockLSTMV2`.
    """
    inputs = call.inputs
    x, cs_prev, h_prev, w = (inputs[name] for name in ("x", "cs_prev", "h_prev", "w"))
    # Not the inputs themselves: if the op is in a loop of TensorFlow 1, the loop over time here
    # cannot get at what is outside of the gradient of that loop.
    peepholes = {name: tf.identity(inputs[name]) for name in PEEPHOLES}
    length = tf.reshape(tf.cast(inputs["seq_len_max"], tf.int32), [])
    outputs = {name: call.outputs[name][:length] for name in (*_SAVED, "h")}
    incoming = {name: gradient[:length] for name, gradient in call.incoming.items()}
    cs_before = time_loop.before(cs_prev, outputs["cs"])
    h_before = time_loop.before(h_prev, outputs["h"])
    input_size, time = tf.shape(x)[2], tf.shape(x)[0]
    x, w_x, w_h = x[:length], w[:input_size], w[input_size:]

    def step(
        carry: List[tf.Tensor], rows: Tensors, arrived: Incoming
    ) -> Tuple[List[tf.Tensor], tf.Tensor]:
        arrived["cs"] += carry[0]
        arrived["h"] += carry[1]
        cs_grad, gates = step_gradients(
            call.switch, rows["cs_before"], peepholes, rows, arrived, call.functions
        )
        d_bar = tf.concat([gates[gate] for gate in columns], axis=1)
        return [cs_grad, product(d_bar, w_h, transpose_b=True)], d_bar

    sequences = {name: outputs[name] for name in _SAVED}
    (cs_prev_grad, h_prev_grad), d_bar = time_loop.backwards(
        step,
        [tf.zeros_like(cs_prev), tf.zeros_like(h_prev)],
        dict(sequences, cs_before=cs_before),
        incoming,
    )

    d_bar = time_loop.rows(d_bar)
    x_grad = tf.reshape(product(d_bar, w_x, transpose_b=True), tf.shape(x))
    cs_rows, cs_before_rows = time_loop.rows(outputs["cs"]), time_loop.rows(cs_before)
    gates = dict(zip(columns, tf.split(d_bar, 4, axis=1)))
    return {
        "x_grad": tf.pad(x_grad, [[0, time - length], [0, 0], [0, 0]]),
        "cs_prev_grad": cs_prev_grad,
        "h_prev_grad": h_prev_grad,
        "w_grad": weight_gradient([time_loop.rows(x), time_loop.rows(h_before)], d_bar),
        "b_grad": bias_gradient(d_bar),
        **peephole_gradients(call.switch, peepholes, cs_before_rows, cs_rows, gates),
    }


def lstm_grad(call: Call) -> Tensors:
    """The outputs of `BlockcellLSTMGrad`, for gradients that arrive at any output.

    With zeros in place of all that belongs to steps that a row does not have, nothing flows through
    these, and all rows may have as many.
    """
    inputs = call.inputs
    mask = time_loop.row_mask(inputs["sequence_length"], inputs["x"])

    def masked(tensors: Tensors) -> Tensors:
        return {name: time_loop.masked(mask, tensor) for name, tensor in tensors.items()}

    as_block_lstm = dict(inputs, x=time_loop.masked(mask, inputs["x"]))
    as_block_lstm["seq_len_max"] = tf.shape(inputs["x"])[0]
    as_block_lstm.update(dict.fromkeys(PEEPHOLES, tf.zeros([0])))
    incoming = Incoming(masked(call.incoming))
    changed = call._replace(inputs=as_block_lstm, outputs=masked(call.outputs), incoming=incoming)
    return block_lstm_grad(IFCO, changed)
