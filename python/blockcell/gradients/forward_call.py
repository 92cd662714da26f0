"""A call of an op, as the equations of its gradient need it."""

from typing import Any, Dict, NamedTuple

Tensors = Dict[str, Any]
"""Tensors by the names that `tf.raw_ops` gives them."""


class Call(NamedTuple):
    """The tensors of a forward op, and the gradients that arrive at its outputs."""

    inputs: Tensors
    """All inputs."""
    outputs: Tensors
    """The outputs that the gradient op takes, at least."""
    incoming: Tensors
    """The gradients, by the names of the outputs at which they arrive; the others are zero."""
    switch: bool
    """`use_peephole` or `reset_after`; False where the op has neither."""

    def gradients(self, *names: str) -> Dict[str, Any]:
        """What arrives at these outputs; the number 0 where nothing does."""
        return {name: self.incoming.get(name, 0.0) for name in names}
