"""Variables, states and arguments that a cell for a step and one for a sequence have in common."""

from typing import Any, Dict, Optional, Tuple

import tensorflow as tf

from blockcell.rnn import states
from blockcell.rnn.layer import Layer, input_size

PEEPHOLES = {"wci": "w_i_diag", "wcf": "w_f_diag", "wco": "w_o_diag"}
"""Names of the variables by those of the ops' inputs."""


class LSTM(Layer):
    """An LSTM's arguments, variables and state."""

    def __init__(
        self,
        num_units: int,
        forget_bias: float,
        cell_clip: Optional[float],
        use_peephole: bool,
        dtype: Any,
        reuse: Optional[bool],
        name: Optional[str],
    ) -> None:
        """Creates no variables yet. The cells describe the arguments."""
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

    def _pair(self, what: str, state: Any) -> Any:
        """The tensors c and h of a state, which messages call `what`.

        Raises:
          ValueError: It is not a pair of tensors `[batch, num_units]`.
        """
        if len(state) != 2:
            raise ValueError(f"{self.name}: {what} must be a pair (c, h), got {len(state)} parts")
        parts = [tf.convert_to_tensor(part) for part in state]
        for name, part in zip(("cs_prev", "h_prev"), parts):
            check_state(self, name, part, self._num_units)
        return states.LSTMStateTuple(*parts)

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


def add_gru_variables(layer: Layer, names: Tuple[str, ...], inputs: int, units: int) -> None:
    """Creates the variables of a GRU: weights and bias of the gates, then of the candidate."""
    gates_kernel, gates_bias, candidate_kernel, candidate_bias = names
    layer.add_variable(gates_kernel, [inputs + units, 2 * units])
    layer.add_variable(gates_bias, [2 * units], tf.compat.v1.constant_initializer(1.0))
    layer.add_variable(candidate_kernel, [inputs + units, units])
    layer.add_variable(candidate_bias, [units], tf.compat.v1.constant_initializer(0.0))


def check_state(layer: Layer, name: str, state: Any, units: int) -> None:
    """Checks what is known of the shape of a state.

    Raises:
      ValueError: It is not `[batch, units]`.
    """
    if not state.shape.is_compatible_with([None, units]):
        raise ValueError(
            f"{layer.name}: {name} must have shape [batch, num_units] = [?, {units}], got "
            f"{state.shape}"
        )
