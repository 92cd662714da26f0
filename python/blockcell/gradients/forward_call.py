"""A call of an op, and the gradients that arrive at its outputs and may be absent."""

import functools
from typing import Any, Callable, Dict, NamedTuple, Optional, Sequence, Tuple

import numpy as np
import tensorflow as tf

from blockcell import tf_internals
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
    functions: Tuple[str, str] = ("tanh", "sigmoid")
    """The function of the state, and that of the gates."""

    def widened(self) -> "Call":
        """The same in float32, but for lengths."""
        inputs = {
            name: tensor if name in LENGTHS else wide(tensor)
            for name, tensor in self.inputs.items()
        }
        outputs = {name: wide(tensor) for name, tensor in self.outputs.items()}
        incoming = Incoming((name, wide(tensor)) for name, tensor in self.incoming.items())
        return self._replace(inputs=inputs, outputs=outputs, incoming=incoming)


def present(gradient: Any) -> Optional[tf.Tensor]:
    """Returns the gradient of one output as a tensor, or None if nothing flows in there.

    TensorFlow hands over None or zeros for an output that the loss does not depend on. Its zeros
    are recognised by how the graph made them, in eager mode by their values, so that nothing is
    computed from them. Zeros of any other making are simply computed with. So are zeros that a tape
    records or that came in through `grad_ys`: the gradient may be differentiated with respect to
    them, and would not depend on what it was not computed from.

    Args:
      gradient: A tensor, `tf.IndexedSlices` or None.
    """
    if gradient is None:
        return None
    gradient = tf.convert_to_tensor(gradient)
    return None if _is_zeros(gradient) and not _is_recorded(gradient) else gradient


def or_zeros(gradient: Optional[tf.Tensor], like: tf.Tensor) -> tf.Tensor:
    """Returns `gradient`, or zeros of the shape of `like` if it is None."""
    return tf.zeros_like(like) if gradient is None else gradient


def skipped(op: Any) -> Sequence[int]:
    """Returns the indices of inputs whose gradients nobody asks for. Only a tape knows them."""
    return getattr(op, "skip_input_indices", None) or ()


def _is_zeros(tensor: tf.Tensor) -> bool:
    # The mark that TensorFlow 2 leaves on what tf.zeros and tf.zeros_like return.
    if tf_internals.is_marked_as_zeros(tensor):
        return True
    if hasattr(tensor, "numpy"):
        return not np.any(tensor.numpy())
    op = tensor.op
    # Not through Identity: that is what tf.gradients makes of the zeros in grad_ys.
    if op.type == "Fill":
        return _is_zeros(op.inputs[1])
    if op.type == "Const":
        return not np.any(tf.make_ndarray(op.get_attr("value")))
    return bool(op.type == "ZerosLike")


def _is_recorded(tensor: tf.Tensor) -> bool:
    """Whether a tape or a forward accumulator follows `tensor`."""
    return _followers()(tensor)


@functools.lru_cache(maxsize=None)
def _followers() -> Callable[[Any], bool]:
    return tf_internals.tape_follows()
