"""Keras's LSTM and GRU over whole sequences in one op each, where nobody can ask for gradients.

The ops take Keras's weights and masks as they are: nothing is computed around them but transposes.
They have no gradient, so they run outside of tapes only: eagerly, and in the functions of `predict`
and `evaluate`.
"""

import functools
from typing import Any

import tensorflow as tf

from blockcell import loader, tf_internals
from blockcell.keras import exports, run_counts, sequences


def is_certain(infers: bool) -> bool:
    """Whether a layer runs without anybody asking for gradients, as far as can be known now.

    Args:
      infers: Whether the layer is known not to train.
    """
    return (
        infers and exports.gets_into_no_file() and not tf_internals.tape_records() and _takes_over()
    )


@functools.lru_cache(maxsize=None)
def _takes_over() -> bool:
    """Whether the library replaces kernels. Otherwise those of TensorFlow's own ops shall run."""
    return bool(loader.info()["override"] != "off")


def run(
    is_lstm: bool, x: Any, states: Any, weights: Any, mask: Any, options: sequences.Options
) -> sequences.Result:
    """A layer; a GRU with `reset_after`.

    Args:
      is_lstm: Whether it is an LSTM, and not a GRU.
      x: As of `sequences.lstm`.
      states: The states before the first step, `[batch, units]` each.
      weights: As of `sequences.lstm` or `sequences.gru`.
      mask: As of `sequences.lstm`.
      options: The layer's.

    Returns:
      A `sequences.Result`.
    """
    dtype = x.dtype
    kernel, recurrent_kernel, bias = sequences.cast(weights, dtype)
    states = sequences.cast(states, dtype)
    if bias is None:
        biases = [tf.zeros([kernel.shape[1]], dtype)] * (1 if is_lstm else 2)
    else:
        biases = [bias] if is_lstm else tf.unstack(bias)
    x, mask = sequences.by_steps(x, mask, options)
    steps = tf.shape(x)[0]
    ops = loader.module()
    op = ops.blockcell_keras_lstm if is_lstm else ops.blockcell_keras_gru
    outputs = op(
        tf.convert_to_tensor(steps if options.return_sequences else 1, tf.int32),
        [steps],
        x,
        *states,
        kernel,
        recurrent_kernel,
        *biases,
        [] if mask is None else [mask[:, :, tf.newaxis]],
        [] if mask is None else [tf.zeros_like(states[0])],
        last_only=not options.return_sequences,
        repeats=not options.zero_output_for_mask,
        h_sizes=[-1, int(recurrent_kernel.shape[0])],
        **options.functions._asdict(),
    )
    h, last = outputs[0], list(outputs[1:])
    run_counts.mark(h, options.layer)
    return sequences.result(h[-1], h, last, x, options)
