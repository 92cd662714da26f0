"""The loop over time, from the last step to the first, in differentiable ops."""

import tensorflow as tf


def backwards(step, carry, sequences):
    """Applies a step to the rows of sequences, from the last to the first.

    One more step is made in the beginning, with rows of zeros: an array of no steps at all would
    have no shape. It must leave the carry as it is.

    Args:
      step: A function of a list of tensors, the carry, and of a list with the rows of one step;
        returns the new carry, and a tensor of results.
      carry: The carry that enters the last step; tensors [batch, cell_size].
      sequences: Tensors [time, batch, cell_size], float32. Any but the first may be None, and then
        the step gets the number 0 as its row.

    Returns:
      The carry that leaves the first step, and the results of all steps, stacked along time.
    """
    time = tf.shape(sequences[0])[0]
    used = [sequence for sequence in sequences if sequence is not None]
    padding = [[0, 1], [0, 0], [0, 0], [0, 0]]
    rows_of_steps = tf.TensorArray(tf.float32, size=time + 1).unstack(
        tf.pad(tf.stack(used, axis=1), padding)
    )

    def body(t, results, *carry):
        rows = iter(tf.unstack(rows_of_steps.read(t), num=len(used)))
        new_carry, result = step(
            list(carry), [0.0 if sequence is None else next(rows) for sequence in sequences]
        )
        for new, old in zip(new_carry, carry):
            new.set_shape(old.shape)  # The loop demands that no known dimension gets lost.
        return (t - 1, results.write(t, result)) + tuple(new_carry)

    results = tf.TensorArray(tf.float32, size=time + 1)
    end = tf.while_loop(lambda t, *_: t >= 0, body, [time, results] + list(carry))
    return list(end[2:]), end[1].stack()[:time]


def before(first, states):
    """The states [time, batch, cell_size] that enter each step: `first`, then those of the steps.

    Args:
      first: The state [batch, cell_size] that enters the first step.
      states: The states that leave each step, [time, batch, cell_size].
    """
    return tf.concat([tf.expand_dims(first, 0), states], axis=0)[: tf.shape(states)[0]]


def rows(sequence):
    """The steps of a sequence [time, batch, size] below each other, [time * batch, size].

    The sizes are spelled out because -1 has no meaning where another dimension is 0.
    """
    shape = tf.shape(sequence)
    return tf.reshape(sequence, [shape[0] * shape[1], shape[2]])
