"""Cells made of cells: `MultiRNNCell` and `DropoutWrapper`."""

import contextlib
from typing import Any, Optional, Sequence, Tuple

import tensorflow as tf

from blockcell.rnn import states
from blockcell.rnn.cells import RNNCell


class MultiRNNCell(RNNCell):
    """A stack of cells: the output of one is the input of the next.

    The variables of the cells are in the scopes `cell_0`, `cell_1`, ... of its own, as in
    `tf.compat.v1.nn.rnn_cell.MultiRNNCell`.
    """

    def __init__(self, cells: Sequence[Any], state_is_tuple: bool = True) -> None:
        """Keeps the cells.

        Args:
          cells: The cells, a list or a tuple.
          state_is_tuple: Whether the state is a tuple with the state of each cell. If False, it is
            one tensor, the states side by side.

        Raises:
          ValueError: There are no cells; or `state_is_tuple` is False and a cell's state is a
            tuple.
          TypeError: `cells` is no list and no tuple.
        """
        super().__init__("multi_rnn_cell")
        if not isinstance(cells, (list, tuple)):
            raise TypeError(f"cells must be a list or a tuple, got {cells}")
        if not cells:
            raise ValueError("MultiRNNCell needs at least one cell")
        sizes = [cell.state_size for cell in cells]
        if not state_is_tuple and not all(isinstance(size, int) for size in sizes):
            raise ValueError(
                f"state_is_tuple=False needs cells whose state is one tensor, got sizes {sizes}"
            )
        self._state_is_tuple = state_is_tuple
        self._count = len(cells)
        for number, cell in enumerate(cells):
            setattr(self, f"cell-{number}", cell)  # So object-based checkpoints call it.

    @property
    def _cells(self) -> Sequence[Any]:
        return [getattr(self, f"cell-{number}") for number in range(self._count)]

    @property
    def state_size(self) -> Any:
        """The sizes of all cells: a tuple, or their sum with `state_is_tuple=False`."""
        sizes = tuple(cell.state_size for cell in self._cells)
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> int:
        """That of the last cell."""
        return self._cells[-1].output_size

    def call(self, inputs: Any, state: Any) -> Tuple[Any, Any]:
        """A step of all cells, as `__call__` says."""
        if self._state_is_tuple:
            if not isinstance(state, (list, tuple)) or len(state) != self._count:
                raise ValueError(
                    f"{self.name}: the state must be a tuple of {self._count} states, got {state}"
                )
        else:
            state = tf.split(state, [cell.state_size for cell in self._cells], axis=1)
        new_states = []
        with self._scope_of_cells():
            for number, (cell, its_state) in enumerate(zip(self._cells, state)):
                with tf.compat.v1.variable_scope(f"cell_{number}"):
                    inputs, new_state = cell(inputs, its_state)
                new_states.append(new_state)
        return inputs, tuple(new_states) if self._state_is_tuple else tf.concat(new_states, 1)

    def _scope_of_cells(self) -> Any:
        if tf.executing_eagerly() and self._scope.caching_device is not None:
            # Eager mode refuses scopes of loops in a tf.function. The cells have theirs by now.
            return contextlib.nullcontext()
        return tf.compat.v1.variable_scope(self._scope, auxiliary_name_scope=False)


class DropoutWrapper(RNNCell):
    """Dropout of the inputs, the state or the outputs of a cell, drawn anew in each step.

    What is kept is divided by the probability of keeping it. Of a `LSTMStateTuple`, only `h` is
    dropped.
    """

    def __init__(
        self,
        cell: Any,
        input_keep_prob: Any = 1.0,
        output_keep_prob: Any = 1.0,
        state_keep_prob: Any = 1.0,
        seed: Optional[int] = None,
    ) -> None:
        """Keeps the cell.

        Args:
          cell: The cell.
          input_keep_prob: The probability that an input is kept, a number or a scalar tensor.
          output_keep_prob: The same for an output.
          state_keep_prob: The same for a state, after the step.
          seed: A seed for the random numbers.

        Raises:
          ValueError: A probability is a number that is not greater than 0 and at most 1.
        """
        super().__init__("dropout_wrapper")
        probabilities = {
            "input_keep_prob": input_keep_prob,
            "output_keep_prob": output_keep_prob,
            "state_keep_prob": state_keep_prob,
        }
        for name, value in probabilities.items():
            if not tf.is_tensor(value) and not 0.0 < value <= 1.0:
                raise ValueError(f"{name} must be greater than 0 and at most 1, got {value}")
        self.cell = cell
        self._input_keep, self._output_keep, self._state_keep = probabilities.values()
        self._seed = seed

    @property
    def state_size(self) -> Any:
        """That of the cell."""
        return self.cell.state_size

    @property
    def output_size(self) -> int:
        """That of the cell."""
        return self.cell.output_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """That of the cell."""
        return self.cell.zero_state(batch_size, dtype)

    @tf.autograph.experimental.do_not_convert
    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Tuple[Any, Any]:
        """A step of the cell, with dropout. It has no variable scope of its own."""
        outputs, new_state = self.cell(self._dropped(inputs, self._input_keep), state, scope=scope)
        return self._dropped(outputs, self._output_keep), self._dropped_state(new_state)

    def _dropped_state(self, state: Any) -> Any:
        if isinstance(state, states.LSTMStateTuple):
            return states.LSTMStateTuple(state.c, self._dropped(state.h, self._state_keep))
        if isinstance(state, (list, tuple)):
            return type(state)(self._dropped_state(part) for part in state)
        return self._dropped(state, self._state_keep)

    def _dropped(self, tensor: Any, keep: Any) -> Any:
        if not tf.is_tensor(keep) and keep == 1.0:
            return tensor
        return tf.nn.dropout(tensor, rate=1.0 - keep, seed=self._seed)
