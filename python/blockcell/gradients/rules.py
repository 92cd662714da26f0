"""The gradients of the forward ops and of their gradient ops: a table, and how to read it.

What an op takes and returns is in `blockcell.op_table`. A gradient op takes gradients of
some outputs of its forward op, the states (h, cs, h_last). As long as gradients arrive there only,
its kernel computes the gradient. Otherwise, and for second derivatives, the equations of the table
do: plain TensorFlow ops, which TensorFlow can differentiate.

Their arguments, as TensorFlow calls them: `op` is the node, or in eager mode what stands for it;
`incoming` are the gradients with respect to its outputs, in their order, or None. They return the
gradients with respect to its inputs, in their order and of their shapes; None for lengths, and for
inputs whose values the op does not use.
"""

import functools
import logging
from typing import Any, Callable, Container, Dict, List, NamedTuple, Set, Tuple

import tensorflow as tf

from blockcell import node_attributes, op_table
from blockcell.gradients import gru, lstm
from blockcell.gradients.forward_call import Call, Incoming, Tensors, or_zeros, present, skipped
from blockcell.gradients.partial import partial_gradients
from blockcell.op_table import OPS, OpDef

Gradient = Callable[..., List[Any]]


def _named_after_inputs(call: Call, grads: Tensors, skip: Container[str]) -> Tensors:
    """The gradients with respect to the inputs where the gradient op returns all of them."""
    return {name[: -len("_grad")]: gradient for name, gradient in grads.items()}


class Rule(NamedTuple):
    """How a forward op is differentiated."""

    equations: Callable[[Call], Tensors]
    """The gradient op's outputs by name, for gradients that arrive at any output; in float32."""
    input_gradients: Callable[[Call, Tensors, Container[str]], Tensors] = _named_after_inputs
    """The gradients by the input's name, from the call, the gradient op's outputs, and the names of
    inputs whose gradients nobody asks for."""


RULES: Dict[str, Rule] = {
    op_table.GRU_CELL: Rule(gru.cell_grad, gru.cell_inputs),
    op_table.LSTM_CELL: Rule(lstm.cell_grad, lstm.cell_inputs),
    op_table.BLOCK_LSTM: Rule(functools.partial(lstm.block_lstm_grad, lstm.ICFO)),
    op_table.BLOCK_LSTM_V2: Rule(functools.partial(lstm.block_lstm_grad, lstm.IFCO)),
    op_table.BLOCK_GRU: Rule(gru.block_gru_grad),
    op_table.LSTM: Rule(lstm.lstm_grad),
}
"""By the forward op. Its gradient op, and the states, are in the op table."""


def first_order(module: Any, forward: str) -> Gradient:
    """The gradient of a forward op.

    Args:
      module: The library's ops, as `tf.load_op_library` returns them.
      forward: The op's name.
    """
    grad_op = OPS[op_table.GRADIENT_OF[forward]]
    states = op_table.incoming(grad_op.name)
    kernel = getattr(module if grad_op.function else tf.raw_ops, grad_op.function or grad_op.name)

    def gradient(op: Any, *incoming: Any) -> List[Any]:
        call = _call(OPS[forward], op, incoming)
        if set(call.incoming) <= set(states.values()):
            tensors = dict(call.inputs, **call.outputs)
            arguments = {name: tensors[name] for name in grad_op.inputs if name in tensors}
            for name, output in states.items():
                arguments[name] = or_zeros(call.incoming.get(output), call.outputs[output])
            if grad_op.switch:
                arguments[grad_op.switch] = call.switch
            if set(op_table.FUNCTIONS) <= set(grad_op.attributes):
                arguments.update(zip(op_table.FUNCTIONS, call.functions))
            grads = dict(zip(grad_op.outputs, kernel(**arguments)))
            node_attributes.hand_on(op.outputs[0], grads[next(iter(grad_op.outputs))])
        else:
            _log_equations(forward, call)
            grads = _by_equations(forward, call)
        skip = {name for k, name in enumerate(OPS[forward].inputs) if k in skipped(op)}
        found = RULES[forward].input_gradients(call, grads, skip)
        return [found.get(name) for name in OPS[forward].inputs]

    return gradient


def second_order(forward: str) -> Gradient:
    """The gradient of the gradient op of a forward op.

    All inputs of the gradient op but the lengths count as independent of each other, activations
    such as i and h too. What these depend on is for the gradient of the forward op to say.

    Args:
      forward: The forward op's name.
    """
    grad_op = OPS[op_table.GRADIENT_OF[forward]]
    states = op_table.incoming(grad_op.name)

    def gradient(op: Any, *incoming: Any) -> List[Any]:
        given = dict(zip(grad_op.inputs, op.inputs))
        names = [name for name in given if name not in op_table.LENGTHS]
        switch, functions = _attributes(grad_op, op)

        def equations(*tensors: Any) -> List[Any]:
            named = dict(given, **dict(zip(names, tensors)))
            call = Call(
                {name: named[name] for name in OPS[forward].inputs},
                {name: named[name] for name in OPS[forward].outputs if name in named},
                Incoming((output, named[name]) for name, output in states.items()),
                switch,
                functions,
            )
            grads = _by_equations(forward, call)
            return [grads[name] for name in grad_op.outputs]

        found = dict(
            zip(names, partial_gradients(equations, [given[name] for name in names], incoming))
        )
        return [found.get(name) for name in grad_op.inputs]

    return gradient


def _call(forward: OpDef, op: Any, incoming: Any) -> Call:
    """What was given to a forward op, what it returned, and the gradients that are not absent."""
    arrived = zip(forward.outputs, map(present, incoming))
    return Call(
        dict(zip(forward.inputs, op.inputs)),
        dict(zip(forward.outputs, op.outputs)),
        Incoming((name, gradient) for name, gradient in arrived if gradient is not None),
        *_attributes(forward, op),
    )


def _attributes(declared: OpDef, op: Any) -> Tuple[bool, Tuple[str, str]]:
    """Those of an op of a family: its switch, and its functions."""
    switch = bool(declared.switch and op.get_attr(declared.switch))
    if not set(op_table.FUNCTIONS) <= set(declared.attributes):
        return switch, ("tanh", "sigmoid")
    state, gates = (tf.compat.as_str(op.get_attr(name)) for name in op_table.FUNCTIONS)
    return switch, (state, gates)


def _by_equations(forward: str, call: Call) -> Tensors:
    """The gradient op's outputs, computed in float32 and rounded once."""
    grads = RULES[forward].equations(call.widened())
    return {name: tf.cast(tensor, call.inputs["x"].dtype) for name, tensor in grads.items()}


_logged: Set[str] = set()


def _log_equations(forward: str, call: Call) -> None:
    """Says once for each op that its gradient is not computed by a kernel, and how to avoid that.

    A warning for sequences, where it costs most; information for single steps.
    """
    if forward in _logged:
        return
    _logged.add(forward)
    grad_op = OPS[op_table.GRADIENT_OF[forward]]
    states = set(op_table.incoming(grad_op.name).values())
    others = [name for name in call.incoming if name not in states]
    kept = " and ".join(name for name in OPS[forward].outputs if name in states)
    sequence = grad_op.is_sequence
    logging.getLogger("blockcell").log(
        logging.WARNING if sequence else logging.INFO,
        "%s: gradients arrive at the outputs %s. The kernel of %s takes gradients of %s only, so "
        "TensorFlow's own ops compute this gradient%s. If the loss should not depend on these "
        "outputs, use tf.stop_gradient on them, and pass None instead of zeros as their gradients. "
        "This is logged once for each op.",
        forward,
        ", ".join(others),
        grad_op.name,
        kept,
        " in a loop over time, which is many times slower" if sequence else ", which is slower",
    )
