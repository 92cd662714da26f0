"""Keras's LSTM and GRU over whole sequences, on the sequence ops.

Weights are Keras's (`blockcell.keras_weights` turns them into those of the ops, in the graph, so
gradients arrive at Keras's variables). Results are those of Keras's own loop over time:

* A masked step keeps the state. Its output is that of the step before it, or zeros before the
  first step that counts; with `zero_output_for_mask` it is always zeros.
* With `go_backwards` the steps are taken from the last to the first, and outputs stand in the order
  in which they were computed.

A mask may have any form. The steps of each row that count are moved to its front, which leaves a
batch of rows of different lengths, and the outputs are moved back. So a mask costs two copies.
"""

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import tensorflow as tf

from blockcell import block_gru_ops, keras_weights, loader, sequence_lengths
from blockcell.keras import run_counts
from blockcell.keras.functions import USUAL, Functions
from blockcell.op_table import PEEPHOLES


class Result(NamedTuple):
    """What Keras's own loop returns."""

    last_output: Any
    """The output of the last step, `[batch, units]`."""
    outputs: Any
    """Those of all steps, `[batch, time, units]` (`[time, batch, units]` if time-major); only the
    last one, with a time of 1, if not all were asked for."""
    states: List[Any]
    """The states after the last step: h, and for an LSTM c; `[batch, units]`."""


class Options(NamedTuple):
    """How a layer runs, by the names of the layer's arguments."""

    layer: Any
    """The layer itself, whose runs are counted."""
    go_backwards: bool
    return_sequences: bool
    time_major: bool
    zero_output_for_mask: bool
    functions: Functions = USUAL


class _Steps(NamedTuple):
    """What the sequence ops return. Rows of h count up to their own lengths."""

    h: Any
    """`[time, batch, units]`."""
    last: List[Any]
    """The states after each row's last step, `[batch, units]`."""


# Runs an op: of x, time-major, and of each row's number of steps, int64, or None for all steps.
_Op = Callable[[Any, Optional[Any]], _Steps]


def lstm(x: Any, states: Any, weights: Any, mask: Any, options: Options) -> Result:
    """An LSTM layer.

    TensorFlow's op has tanh and the logistic function, in float32 and float16. For others the
    library has one of its own.

    Args:
      x: The inputs, `[batch, time, input_size]` (time-major: `[time, batch, input_size]`), of type
        float32, float16 or bfloat16; all other tensors but the mask are cast to this type.
      states: h and c before the first step, `[batch, units]` each.
      weights: Keras's kernel `[input_size, 4 * units]`, recurrent kernel `[units, 4 * units]` and
        bias `[4 * units]`; the last may be None.
      mask: Which steps count, bool `[batch, time]` (time-major: `[time, batch]`), or None.
      options: The layer's.

    Returns:
      A `Result` with the states h and c.
    """
    h_prev, cs_prev = (tf.cast(state, x.dtype) for state in states)
    kernel, recurrent_kernel, bias = cast(weights, x.dtype)
    w, b = keras_weights.lstm_from_keras(kernel, recurrent_kernel, bias)
    is_stock = runs_on_tensorflows_op(options.functions, x.dtype.name)
    op = _block_lstm if is_stock else _lstm_by_row

    def run(x: Any, sequence_length: Optional[Any]) -> _Steps:
        tensors = {"x": x, "cs_prev": cs_prev, "h_prev": h_prev, "w": w, "b": b}
        steps = op(tensors, sequence_length, options)
        run_counts.mark(steps.h, options.layer)
        pairs = ((h_prev, steps.h), (cs_prev, steps.cs))
        if sequence_length is None:
            return _Steps(steps.h, [of_steps[-1] for _, of_steps in pairs])
        return _Steps(
            steps.h, [sequence_lengths.after_last(*pair, sequence_length) for pair in pairs]
        )

    return _layer(run, x, h_prev, mask, options)


def runs_on_tensorflows_op(functions: Functions, dtype: str) -> bool:
    """Whether an LSTM with these functions, in this type, is `BlockLSTMV2` in training."""
    return functions == USUAL and dtype != "bfloat16"


def _block_lstm(tensors: Dict[str, Any], sequence_length: Optional[Any], _: Options) -> Any:
    """TensorFlow's op. It runs all rows as far as the longest one goes."""
    x, w = tensors["x"], tensors["w"]
    longest = (
        tf.shape(x)[0] if sequence_length is None else sequence_lengths.longest(sequence_length)
    )
    peepholes = dict.fromkeys(PEEPHOLES, tf.zeros([w.shape[1] // 4], x.dtype))
    return tf.raw_ops.BlockLSTMV2(seq_len_max=tf.cast(longest, tf.int64), **tensors, **peepholes)


def _lstm_by_row(tensors: Dict[str, Any], sequence_length: Optional[Any], options: Options) -> Any:
    """The library's op. Behind its end a row may not run on: its state may grow without bound."""
    if sequence_length is None:
        shape = tf.shape(tensors["x"])
        sequence_length = tf.fill([shape[1]], tf.cast(shape[0], tf.int64))
    return loader.module().blockcell_lstm(
        sequence_length=sequence_length, **tensors, **options.functions._asdict()
    )


def gru(
    x: Any, states: Any, weights: Any, mask: Any, options: Options, reset_after: bool
) -> Result:
    """A GRU layer.

    Args:
      x: As of `lstm`.
      states: A list of h before the first step, `[batch, units]`.
      weights: Keras's kernel `[input_size, 3 * units]`, recurrent kernel `[units, 3 * units]` and
        bias, `[2, 3 * units]` with `reset_after`, `[3 * units]` without; the last may be None.
      mask: As of `lstm`.
      options: The layer's.
      reset_after: The layer's.

    Returns:
      A `Result` with the state h.
    """
    h_prev = tf.cast(states[0], x.dtype)
    kernel, recurrent_kernel, bias = cast(weights, x.dtype)
    converted = keras_weights.gru_from_keras(kernel, recurrent_kernel, bias, reset_after)

    def run(x: Any, sequence_length: Optional[Any]) -> _Steps:
        steps = block_gru_ops.block_gru(
            x=x,
            h_prev=h_prev,
            sequence_length=sequence_length,
            reset_after=reset_after,
            **converted._asdict(),
            **options.functions._asdict(),
        )
        run_counts.mark(steps.h, options.layer)
        return _Steps(steps.h, [steps.h_last])

    return _layer(run, x, h_prev, mask, options)


def _layer(run: _Op, x: Any, h_prev: Any, mask: Any, options: Options) -> Result:
    """The layer around an op: order of time and batch, direction, mask."""
    x, mask = by_steps(x, mask, options)
    if mask is None:
        outputs, states = run(x, None)
        last_output = states[0]
    else:
        outputs, last_output, states = _masked(run, x, h_prev, mask, options)
    if not options.return_sequences:
        outputs = last_output[tf.newaxis]
    return result(last_output, outputs, states, x, options)


def by_steps(x: Any, mask: Any, options: Options) -> Tuple[Any, Any]:
    """The inputs and the mask, time-major, in the order in which a layer takes the steps.

    Args:
      x: As of `lstm`.
      mask: As of `lstm`.
      options: The layer's.

    Returns:
      `[time, batch, input_size]`; and bool `[time, batch]`, or None.
    """
    if not options.time_major:
        x = tf.transpose(x, [1, 0, 2])
    if mask is not None:
        mask = tf.cast(mask, tf.bool)
        mask = mask if options.time_major else tf.transpose(mask)
    if options.go_backwards:
        x = tf.reverse(x, [0])
        mask = mask if mask is None else tf.reverse(mask, [0])
    return x, mask


def result(last_output: Any, outputs: Any, states: List[Any], x: Any, options: Options) -> Result:
    """What a layer returns, of known shapes as far as those of `by_steps` are known.

    Args:
      last_output: `[batch, units]`.
      outputs: Time-major: of all steps, or only the last one.
      states: `[batch, units]` each.
      x: The inputs, of `by_steps`.
      options: The layer's.
    """
    time = x.shape[0] if options.return_sequences else 1
    units = states[0].shape[-1]
    outputs.set_shape([time, x.shape[1], units])
    for state in [last_output] + states:
        state.set_shape([x.shape[1], units])
    if not options.time_major:
        outputs = tf.transpose(outputs, [1, 0, 2])
    return Result(last_output, outputs, states)


def _masked(
    run: _Op, x: Any, h_prev: Any, mask: Any, options: Options
) -> Tuple[Any, Any, List[Any]]:
    """The outputs, time-major (None if only the last is wanted), the last output, the states."""
    done = tf.cumsum(tf.cast(mask, tf.int64))  # How many steps count, up to and with each.
    sequence_length = tf.reduce_sum(tf.cast(mask, tf.int64), axis=0)
    # The steps that count, in their order, then the others. Those may hold anything, even NaN, and
    # an LSTM runs through them as far as the longest row goes.
    order = tf.argsort(tf.cast(~mask, tf.int32), axis=0, stable=True)
    valid = tf.transpose(tf.sequence_mask(sequence_length, tf.shape(x)[0]))
    front = tf.where(valid[:, :, tf.newaxis], sequence_lengths.at(x, order), tf.zeros([], x.dtype))
    h, states = run(front, sequence_length)
    zero = tf.zeros([], x.dtype)
    if options.return_sequences:
        outputs = sequence_lengths.at(sequence_lengths.joined(tf.zeros_like(h_prev), h), done)
        if options.zero_output_for_mask:
            outputs = tf.where(mask[:, :, tf.newaxis], outputs, zero)
        return outputs, outputs[-1], states
    counts = mask[-1] if options.zero_output_for_mask else sequence_length > 0
    return None, tf.where(counts[:, tf.newaxis], states[0], zero), states


def cast(tensors: Any, dtype: Any) -> List[Any]:
    """Tensors of this type; None for None.

    Args:
      tensors: Weights or states.
      dtype: The type.
    """
    return [value if value is None else tf.cast(value, dtype) for value in tensors]
