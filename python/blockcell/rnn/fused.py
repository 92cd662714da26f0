"""Cells that compute a whole sequence in one op."""

from typing import Any, Optional, Tuple

import tensorflow as tf

from blockcell import block_gru_ops, sequence_lengths
from blockcell.rnn import states
from blockcell.rnn.parameters import GRU, LSTM, BlockCell


class FusedCell(BlockCell):
    """The base class of the cells for whole sequences."""

    rank = 3

    @property
    def num_units(self) -> int:
        """The number of units."""
        return self._num_units

    @tf.autograph.experimental.do_not_convert
    def __call__(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: Any = None,
        sequence_length: Any = None,
        scope: Any = None,
    ) -> Tuple[Any, Any]:
        """Computes a sequence. The first call creates the variables.

        Args:
          inputs: `[time, batch, input_size]`, or a list with a tensor `[batch, input_size]` for
            each step.
          initial_state: The state before the first step: tensors `[batch, num_units]` in the
            structure of `state_size`; zeros by default.
          dtype: The type of the initial state. Required without `initial_state`.
          sequence_length: The number of steps of each row, integers `[batch]`, each from 0 to
            time; all steps by default.
          scope: The variable scope, or its name; only the first call uses it.

        Returns:
          The outputs, `[time, batch, num_units]` and zero after the end of a row, as a tensor or
          as a list, like the inputs; and the state after each row's last step.

        Raises:
          ValueError: A rank, a size or a structure is not as described; or neither `initial_state`
            nor `dtype` is given.
          tf.errors.InvalidArgumentError: The same, where shapes are known only when it runs; or a
            length is larger than time.
        """
        outputs, state = self._computed(inputs, scope, initial_state, dtype, sequence_length)
        return (tf.unstack(outputs) if isinstance(inputs, list) else outputs), state

    def call(
        self, inputs: Any, initial_state: Any, dtype: Any, sequence_length: Any
    ) -> Tuple[Any, Any]:
        """Computes a sequence; see `__call__`."""
        if initial_state is not None:
            initial_state = self._checked("initial_state", initial_state)
        elif dtype is None:
            raise ValueError(f"{self.name}: either initial_state or dtype must be given")
        else:
            initial_state = states.zeros(self.state_size, sequence_lengths.size(inputs, 1), dtype)
        if sequence_length is not None:
            sequence_length = tf.convert_to_tensor(sequence_length, name="sequence_length")
        return self._sequence(inputs, initial_state, sequence_length)

    def _sequence(self, inputs: Any, initial_state: Any, sequence_length: Any) -> Tuple[Any, Any]:
        """The outputs, zero from the end of each row on, and the final state."""
        raise NotImplementedError

    def _tensor(self, inputs: Any) -> Any:
        if not isinstance(inputs, list):
            return super()._tensor(inputs)
        if not inputs:
            raise ValueError(f"{self.name}: the list of inputs is empty")
        return tf.stack([super(FusedCell, self)._tensor(step) for step in inputs])


class LSTMBlockFusedCell(LSTM, FusedCell):
    """An LSTM over whole sequences on the op `BlockLSTM`; float32 or float16.

    Variables: those of `LSTMBlockCell`. The state is a `LSTMStateTuple`.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: Optional[float] = None,
        use_peephole: bool = False,
        reuse: Optional[bool] = None,
        dtype: Any = None,
        name: Optional[str] = "lstm_fused_cell",
    ) -> None:
        """Creates the cell, like `LSTMBlockCell`; here `reuse` comes before `dtype`."""
        super().__init__(num_units, forget_bias, cell_clip, use_peephole, dtype, reuse, name)

    def _sequence(self, inputs: Any, initial_state: Any, sequence_length: Any) -> Tuple[Any, Any]:
        time = sequence_lengths.size(inputs, 0)
        longest = time if sequence_length is None else sequence_lengths.longest(sequence_length)
        steps = tf.raw_ops.BlockLSTM(
            seq_len_max=tf.cast(longest, tf.int64),
            x=inputs,
            cs_prev=initial_state.c,
            h_prev=initial_state.h,
            **self._op_arguments(),
        )
        if sequence_length is None:
            return steps.h, states.LSTMStateTuple(
                _last(initial_state.c, steps.cs, time), _last(initial_state.h, steps.h, time)
            )
        mask = tf.transpose(tf.sequence_mask(sequence_length, time, dtype=inputs.dtype))
        outputs = steps.h * tf.expand_dims(mask, -1)
        return outputs, states.LSTMStateTuple(
            sequence_lengths.after_last(initial_state.c, steps.cs, sequence_length),
            sequence_lengths.after_last(initial_state.h, steps.h, sequence_length),
        )


def _last(first: Any, steps: Any, time: Any) -> Any:
    """The state after the last step; `first` where there may be no step."""
    if isinstance(time, int) and time > 0:
        return steps[-1]
    return sequence_lengths.joined(first, steps[-1:])[-1]


class GRUBlockFusedCell(GRU, FusedCell):
    """A GRU over whole sequences on the library's op `BlockGRU`; float32 or float16.

    `tf.contrib.rnn` does not have it. The equations and the names and shapes of the variables are
    those of `GRUBlockCellV2`, so checkpoints of cells with the same name are interchangeable. The
    state is one tensor `[batch, num_units]`.
    """

    def __init__(
        self,
        num_units: int,
        reuse: Optional[bool] = None,
        dtype: Any = None,
        name: Optional[str] = "gru_fused_cell",
    ) -> None:
        """Creates the cell. The first call creates its variables.

        Args:
          num_units: The number of units.
          reuse: Whether to use the existing variables of the variable scope. By default, as in the
            enclosing variable scope.
          dtype: The type of the variables, float32 or float16; by default that of the inputs.
          name: The name of the cell and of its variable scope.

        Raises:
          LibraryError: As `blockcell.load`.
        """
        super().__init__(name, dtype, reuse)
        self._num_units = num_units

    def _sequence(self, inputs: Any, initial_state: Any, sequence_length: Any) -> Tuple[Any, Any]:
        steps = block_gru_ops.block_gru(
            inputs, h_prev=initial_state, sequence_length=sequence_length, **self._op_arguments()
        )
        return steps.h, steps.h_last


class TimeReversedFusedRNN:
    """Runs a cell for whole sequences backwards in time, each row from its own last step."""

    def __init__(self, cell: Any) -> None:
        """Keeps the cell.

        Args:
          cell: What is called with reversed inputs, such as a `LSTMBlockFusedCell`.
        """
        self._cell = cell

    @tf.autograph.experimental.do_not_convert
    def __call__(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: Any = None,
        sequence_length: Any = None,
        scope: Any = None,
    ) -> Tuple[Any, Any]:
        """As that of the cell: outputs in the order of the inputs, and the state after step 0."""
        outputs, final_state = self._cell(
            _reversed(inputs, sequence_length),
            initial_state=initial_state,
            dtype=dtype,
            sequence_length=sequence_length,
            scope=scope,
        )
        return _reversed(outputs, sequence_length), final_state


def _reversed(steps: Any, sequence_length: Any) -> Any:
    """The steps in reverse order; those after the end of a row stay where they are."""
    is_list = isinstance(steps, list)
    if sequence_length is None:
        return steps[::-1] if is_list else tf.reverse(steps, [0])
    stacked = tf.stack(steps) if is_list else steps
    back = tf.reverse_sequence(stacked, sequence_length, seq_axis=0, batch_axis=1)
    return tf.unstack(back) if is_list else back
