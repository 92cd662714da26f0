"""A call of an op, as the equations of its gradient need it."""

from typing import Any, Dict, NamedTuple

from blockcell.gradients.arithmetic import wide
from blockcell.op_table import LENGTHS

Tensors = Dict[str, Any]
"""Tensors by the names that `tf.raw_ops` gives them."""


class Incoming(Tensors):
    """Gradients, by the names of the outputs at which they arrive; elsewhere the number 0."""

    def __missing__(self, name: str) -> float:
        """Nothing arrives there."""
        return 0.0


class Call(NamedTuple):
    """The tensors of a forward op, and the gradients that arrive at its outputs."""

    inputs: Tensors
    """All inputs."""
    outputs: Tensors
    """The outputs that the gradient op takes, at least."""
    incoming: Incoming
    switch: bool
    """`use_peephole` or `reset_after`; False where the op has neither."""

    def widened(self) -> "Call":
        """The same in float32, but for lengths."""
        inputs = {
            name: tensor if name in LENGTHS else wide(tensor)
            for name, tensor in self.inputs.items()
        }
        outputs = {name: wide(tensor) for name, tensor in self.outputs.items()}
        incoming = Incoming((name, wide(tensor)) for name, tensor in self.incoming.items())
        return Call(inputs, outputs, incoming, self.switch)
