"""Cells that compute one step: `GRUBlockCell`, `GRUBlockCellV2`, `LSTMBlockCell`."""

from typing import Any, Optional, Tuple

import tensorflow as tf

from blockcell import sequence_lengths
from blockcell.rnn import states
from blockcell.rnn.layer import Layer
from blockcell.rnn.parameters import GRU, LSTM


class RNNCell(Layer):
    """A cell, which `tf.compat.v1.nn.static_rnn` and `dynamic_rnn` call for each step."""

    @tf.autograph.experimental.do_not_convert
    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Tuple[Any, Any]:
        """Computes a step. The first call creates the variables.

        Args:
          inputs: `[batch, input_size]`.
          state: The state before the step: tensors `[batch, units]` in the structure of
            `state_size`.
          scope: The variable scope, or its name; only the first call uses it.

        Returns:
          The output, `[batch, output_size]`, and the state after the step.

        Raises:
          ValueError: A rank, a size or a structure is not as described.
        """
        return self._computed(inputs, scope, state)

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """Returns a state of zeros.

        Args:
          batch_size: A number, or a scalar integer tensor.
          dtype: The type of the tensors.

        Returns:
          Tensors `[batch_size, units]` in the structure of `state_size`.
        """
        with tf.name_scope(type(self).__name__ + "ZeroState"):
            return states.zeros(self.state_size, batch_size, dtype)

    def get_initial_state(
        self, inputs: Any = None, batch_size: Any = None, dtype: Any = None
    ) -> Any:
        """Returns a state of zeros for inputs, or for a batch size and a type.

        Args:
          inputs: A tensor whose first dimension is the batch size.
          batch_size: The batch size; with inputs, it must be theirs.
          dtype: The type of the state; with inputs, it must be theirs.

        Returns:
          As `zero_state`.

        Raises:
          ValueError: `inputs` and one of the others are missing, or they disagree.
        """
        if inputs is not None:
            inputs = tf.convert_to_tensor(inputs)
            size = sequence_lengths.size(inputs, 0)
            if isinstance(size, int) and isinstance(batch_size, int) and size != batch_size:
                raise ValueError(
                    f"{self.name}: batch_size is {batch_size}, but inputs have shape {inputs.shape}"
                )
            if dtype is not None and tf.as_dtype(dtype) != inputs.dtype:
                raise ValueError(
                    f"{self.name}: dtype is {tf.as_dtype(dtype).name}, but inputs are "
                    f"{inputs.dtype.name}"
                )
            batch_size, dtype = size, inputs.dtype
        if batch_size is None or dtype is None:
            raise ValueError(
                f"{self.name}: inputs, or batch_size and dtype, are needed for an initial state, "
                f"got batch_size={batch_size}, dtype={dtype}"
            )
        return self.zero_state(batch_size, dtype)


class GRUBlockCell(GRU, RNNCell):
    """The GRU cell on the op `GRUBlockCell` (Cho et al., 2014); float32.

    Variables: `w_ru` [input_size + num_units, 2 * num_units], `b_ru` [2 * num_units], initially 1,
    `w_c` [input_size + num_units, num_units], `b_c` [num_units], initially 0. `GRUBlockCellV2` has
    the same under the names of `tf.compat.v1.nn.rnn_cell.GRUCell`.
    """

    rank = 2
    _names = {"w_ru": "w_ru", "b_ru": "b_ru", "w_c": "w_c", "b_c": "b_c"}

    def __init__(
        self,
        num_units: Optional[int] = None,
        cell_size: Optional[int] = None,
        reuse: Optional[bool] = None,
        name: Optional[str] = "gru_cell",
    ) -> None:
        """Creates the cell. The first call creates its variables.

        Args:
          num_units: The number of units.
          cell_size: The old name of the argument `num_units`.
          reuse: Whether to use the existing variables of the variable scope. By default, as in the
            enclosing variable scope.
          name: The name of the cell and of its variable scope.

        Raises:
          ValueError: Not exactly one of `num_units` and `cell_size` is given.
          LibraryError: As `blockcell.load`.
        """
        super().__init__(name, reuse=reuse)
        given = [units for units in (num_units, cell_size) if units is not None]
        if len(given) != 1:
            raise ValueError(
                f"{self.name}: exactly one of num_units and cell_size must be given, got "
                f"{num_units} and {cell_size}"
            )
        self._num_units = given[0]

    def call(self, inputs: Any, h_prev: Any) -> Tuple[Any, Any]:
        """Computes a step; see `__call__`."""
        h_prev = self._checked("the state", h_prev)
        h = tf.raw_ops.GRUBlockCell(x=inputs, h_prev=h_prev, **self._op_arguments()).h
        return h, h


class GRUBlockCellV2(GRUBlockCell):
    """`GRUBlockCell` with the names of the variables of `tf.compat.v1.nn.rnn_cell.GRUCell`.

    They are `gates/kernel`, `gates/bias`, `candidate/kernel` and `candidate/bias`.
    """

    _names = GRU._names


class LSTMBlockCell(LSTM, RNNCell):
    """The LSTM cell on the op `LSTMBlockCell` (Zaremba et al., 2014); float32 or float16.

    Variables: `kernel` [input_size + num_units, 4 * num_units], `bias` [4 * num_units], initially
    0, and with `use_peephole` the vectors `w_i_diag`, `w_f_diag` and `w_o_diag` [num_units]. The
    order of columns is that of `tf.compat.v1.nn.rnn_cell.LSTMCell`: checkpoints are compatible.
    """

    rank = 2

    def call(self, inputs: Any, state: Any) -> Tuple[Any, Any]:
        """Computes a step; see `__call__`."""
        cs_prev, h_prev = self._checked("the state", state)
        step = tf.raw_ops.LSTMBlockCell(
            x=inputs, cs_prev=cs_prev, h_prev=h_prev, **self._op_arguments()
        )
        return step.h, states.LSTMStateTuple(step.cs, step.h)
