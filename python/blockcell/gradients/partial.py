"""Gradients of functions of plain TensorFlow ops."""

from typing import Any, Callable, List, Sequence, Tuple

import tensorflow as tf

from blockcell.gradients.forward_call import present


def partial_gradients(
    function: Callable[..., Sequence[tf.Tensor]],
    inputs: Sequence[tf.Tensor],
    incoming: Sequence[Any],
) -> List[Any]:
    """Differentiates a function with respect to each of its arguments, the others held fixed.

    What the arguments were computed from does not count, nor that one tensor may be given twice.
    The result can be differentiated further, as far as TensorFlow can differentiate the function's
    ops: loops of TensorFlow 1's control flow only once.

    Args:
      function: A function of tensors, made of TensorFlow ops; returns a sequence of tensors.
      inputs: Its arguments, all of a type that can be differentiated.
      incoming: The gradient that arrives at each output; a tensor, `tf.IndexedSlices` or None.

    Returns:
      A list with the gradient with respect to each argument; None where none depends on it.
    """
    incoming = [present(gradient) for gradient in incoming]
    if all(gradient is None for gradient in incoming):
        return [None] * len(inputs)
    inputs = [tf.identity(tensor) for tensor in inputs]
    if not tf.executing_eagerly():  # Where a tape would not get through loops of TensorFlow 1.
        return list(tf.gradients(*_reached(function(*inputs), incoming, inputs)))
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(inputs)
        outputs = function(*inputs)
    return list(tape.gradient(*_reached(outputs, incoming, inputs)))


def _reached(
    outputs: Sequence[Any], incoming: Sequence[Any], inputs: Sequence[Any]
) -> Tuple[List[Any], Sequence[Any], List[Any]]:
    """The arguments of tf.gradients and tape.gradient, for the outputs with gradients."""
    reached = [pair for pair in zip(outputs, incoming) if pair[1] is not None]
    return [pair[0] for pair in reached], inputs, [pair[1] for pair in reached]
