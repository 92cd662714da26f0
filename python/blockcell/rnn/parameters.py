"""Variables, states and arguments that a cell for a step and one for a sequence have in common."""

from typing import Any, Callable, Dict, Optional

import tensorflow as tf

from blockcell.rnn import states
from blockcell.rnn.layer import Layer, input_size

PEEPHOLES = {"wci": "w_i_diag", "wcf": "w_f_diag", "wco": "w_o_diag"}
"""Names of the variables by those of the ops' inputs."""


class BlockCell(Layer):
    """What the cells on block RNN ops have in common: a number of units, and a state to check."""

    _num_units: int

    @property
    def output_size(self) -> int:
        """The number of units."""
        return self._num_units

    _checked: Callable[[str, Any], Any]
    """A state, which messages call by the first argument, as tensors in its structure."""

    def _state(self, name: str, state: Any) -> Any:
        """A tensor of a state.

        Raises:
          ValueError: It is not `[batch, num_units]`.
        """
        state = tf.convert_to_tensor(state)
        if not state.shape.is_compatible_with([None, self._num_units]):
            raise ValueError(
                f"{self.name}: {name} must have shape [batch, num_units] = [?, {self._num_units}], "
                f"got {state.shape}"
            )
        return state


class LSTM(BlockCell):
    """An LSTM's arguments, variables and state."""

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: Optional[float] = None,
        use_peephole: bool = False,
        dtype: Any = None,
        reuse: Optional[bool] = None,
        name: Optional[str] = "lstm_cell",
    ) -> None:
        """Creates no variables yet.

        Args:
          num_units: The number of units.
          forget_bias: What is added to the pre-activation of the forget gate.
          cell_clip: The cell state is clipped to plus and minus this; None, 0 or less for no
            clipping.
          use_peephole: Whether the gates see the cell state.
          dtype: The type of the variables, float32 or float16; by default that of the inputs.
          reuse: Whether to use the variables that the variable scope has. By default, as the
            enclosing variable scope says.
          name: The name of the cell; its variable scope is called so.

        Raises:
          LibraryError: As `blockcell.load`.
        """
        super().__init__(name, dtype, reuse)
        self._num_units = num_units
        self._forget_bias = forget_bias
        self._cell_clip = -1.0 if cell_clip is None else cell_clip
        self._use_peephole = use_peephole

    @property
    def state_size(self) -> Any:
        """A `LSTMStateTuple` of two times the number of units."""
        return states.LSTMStateTuple(self._num_units, self._num_units)

    def build(self, input_shape: Any) -> None:
        """Creates the variables for inputs of a shape `[..., batch, input_size]`."""
        inputs, units = input_size(self, input_shape), self._num_units
        self.add_variable("kernel", [inputs + units, 4 * units])
        self.add_variable("bias", [4 * units], tf.compat.v1.constant_initializer(0.0))
        if self._use_peephole:
            for name in PEEPHOLES.values():
                self.add_variable(name, [units])
        super().build(input_shape)

    def _checked(self, what: str, state: Any) -> Any:
        if len(state) != 2:
            raise ValueError(f"{self.name}: {what} must be a pair (c, h), got {len(state)} parts")
        return states.LSTMStateTuple(*map(self._state, ("cs_prev", "h_prev"), state))

    def _op_arguments(self) -> Dict[str, Any]:
        """Weights and attributes, by the names that the ops have for them."""
        arguments = {
            "w": self.kernel,
            "b": self.bias,
            "forget_bias": self._forget_bias,
            "cell_clip": self._cell_clip,
            "use_peephole": self._use_peephole,
        }
        if self._use_peephole:
            arguments.update({name: getattr(self, stored) for name, stored in PEEPHOLES.items()})
        else:
            arguments.update(dict.fromkeys(PEEPHOLES, tf.zeros([self._num_units], self.dtype)))
        return arguments


class GRU(BlockCell):
    """A GRU's variables and state."""

    _names = {
        "w_ru": "gates/kernel",
        "b_ru": "gates/bias",
        "w_c": "candidate/kernel",
        "b_c": "candidate/bias",
    }
    """Names of the variables by those of the ops' inputs."""

    @property
    def state_size(self) -> Any:
        """The number of units."""
        return self._num_units

    def build(self, input_shape: Any) -> None:
        """Creates the variables for inputs of a shape `[..., batch, input_size]`."""
        rows, units = input_size(self, input_shape) + self._num_units, self._num_units
        ones, zeros = map(tf.compat.v1.constant_initializer, (1.0, 0.0))
        self.add_variable(self._names["w_ru"], [rows, 2 * units])
        self.add_variable(self._names["b_ru"], [2 * units], ones)
        self.add_variable(self._names["w_c"], [rows, units])
        self.add_variable(self._names["b_c"], [units], zeros)
        super().build(input_shape)

    def _checked(self, what: str, state: Any) -> Any:
        return self._state("h_prev", state)

    def _op_arguments(self) -> Dict[str, Any]:
        """Weights, by the names that the ops have for them."""
        return {name: getattr(self, stored) for name, stored in self._names.items()}
