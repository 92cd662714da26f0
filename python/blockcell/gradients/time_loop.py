"""The loop over time, from the last step to the first, in differentiable ops."""

from typing import Any, Callable, List, Tuple

import tensorflow as tf

from blockcell import sequence_lengths
from blockcell.gradients.forward_call import Incoming, Tensors

Step = Callable[[List[tf.Tensor], Tensors, Incoming], Tuple[List[tf.Tensor], tf.Tensor]]


def backwards(
    step: Step, carry: List[tf.Tensor], sequences: Tensors, incoming: Tensors
) -> Tuple[List[tf.Tensor], tf.Tensor]:
    """Applies a step to the rows of sequences, from the last to the first.

    One more step is made in the beginning, with rows of zeros: an array of no steps at all would
    have no shape. It must leave the carry as it is.

    Args:
      step: A function of a list of tensors, the carry, and of the rows of one step: of each
        sequence, and of the gradients that arrive. It returns the new carry, and a tensor of
        results.
      carry: The carry that enters the last step; tensors [batch, cell_size].
      sequences: Tensors [time, batch, cell_size], float32, by name; at least one.
      incoming: Gradients that arrive, of that shape and type, by the name of the output.

    Returns:
      The carry that leaves the first step, and the results of all steps, stacked along time.
    """
    together = list(sequences.values()) + list(incoming.values())
    time = tf.shape(together[0])[0]
    padding = [[0, 1], [0, 0], [0, 0], [0, 0]]
    rows_of_steps = tf.TensorArray(tf.float32, size=time + 1).unstack(
        tf.pad(tf.stack(together, axis=1), padding)
    )

    def body(t: tf.Tensor, results: tf.TensorArray, *carry: tf.Tensor) -> Tuple[Any, ...]:
        read = iter(tf.unstack(rows_of_steps.read(t), num=len(together)))
        rows = {name: next(read) for name in sequences}
        arrived = Incoming((name, next(read)) for name in incoming)
        new_carry, result = step(list(carry), rows, arrived)
        for new, old in zip(new_carry, carry):
            new.set_shape(old.shape)  # The loop demands that no known dimension gets lost.
        return (t - 1, results.write(t, result)) + tuple(new_carry)

    results = tf.TensorArray(tf.float32, size=time + 1)
    end = tf.while_loop(lambda t, *_: t >= 0, body, [time, results] + list(carry))
    return list(end[2:]), end[1].stack()[:time]


def before(first: tf.Tensor, states: tf.Tensor) -> tf.Tensor:
    """The states [time, batch, cell_size] that enter each step: `first`, then those of the steps.

    Args:
      first: The state [batch, cell_size] that enters the first step.
      states: The states that leave each step, [time, batch, cell_size].
    """
    return sequence_lengths.joined(first, states)[: tf.shape(states)[0]]


def rows(sequence: tf.Tensor) -> tf.Tensor:
    """The steps of a sequence [time, batch, size] below each other, [time * batch, size].

    The sizes are spelled out because -1 has no meaning where another dimension is 0.
    """
    shape = tf.shape(sequence)
    return tf.reshape(sequence, [shape[0] * shape[1], shape[2]])


def row_mask(sequence_length: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """Which rows have which steps, [time, batch]: x is [time, batch, input_size]."""
    return tf.transpose(tf.sequence_mask(sequence_length, tf.shape(x)[0]))


def broadcast(mask: tf.Tensor, sequence: tf.Tensor) -> tf.Tensor:
    """A mask [time, batch] as one of the shape of a sequence [time, batch, size]."""
    return tf.broadcast_to(tf.expand_dims(mask, 2), tf.shape(sequence))


def masked(mask: tf.Tensor, sequence: tf.Tensor) -> tf.Tensor:
    """A sequence [time, batch, size] with zeros where the mask is false, even in place of NaN."""
    return tf.compat.v1.where(broadcast(mask, sequence), sequence, tf.zeros_like(sequence))
