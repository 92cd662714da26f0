"""What all cells have in common: a name, a variable scope, and variables made at the first call."""

from typing import Any, Callable, List, Optional

import tensorflow as tf

from blockcell import loader


class Layer(tf.Module):
    """A `tf.Module` that names and creates its variables as the layers of TensorFlow 1 do.

    The first call determines the variable scope: the argument `scope` of that call, otherwise the
    name of the layer, made unique within the enclosing variable scope. Every later call uses the
    same variables.
    """

    rank: Optional[int] = None
    """The rank that inputs must have, if any."""

    def __init__(self, name: Optional[str], dtype: Any = None, reuse: Optional[bool] = None):
        """Loads the library; creates no variables yet.

        Args:
          name: The name of the layer; by default that of the class in snake case.
          dtype: The type of the variables; by default that of the inputs.
          reuse: Whether to use the variables that the variable scope has. By default, as the
            enclosing variable scope says. Eager mode and `tf.function` keep no variables by name,
            so there it must not be True.

        Raises:
          ValueError: `reuse` is True where variables are not kept by name.
          LibraryError: As `blockcell.load`.
        """
        loader.module()
        super().__init__()  # It would refuse names that are no Python identifiers.
        if name is not None:
            self._name = name
        if reuse is True and not _in_graph_of_version_1():
            raise ValueError(
                f"{self.name}: reuse=True needs a graph of TensorFlow 1. Eager mode and "
                "tf.function keep no variables by name: call the same object again."
            )
        self.built = False
        self._dtype = None if dtype is None else tf.as_dtype(dtype)
        self._reuse = reuse
        self._scope: Any = None

    @property
    def dtype(self) -> Any:
        """The `tf.DType` of the variables; None if the first inputs are still to determine it."""
        return self._dtype

    @property
    def state_size(self) -> Any:
        """The number of units of the state, or a structure of such numbers."""
        raise NotImplementedError

    @property
    def output_size(self) -> int:
        """The number of units of the output."""
        raise NotImplementedError

    @property
    def scope_name(self) -> str:
        """The variable scope, such as `"rnn/lstm_cell"`.

        Raises:
          ValueError: Nothing has determined it yet.
        """
        if self._scope is None:
            raise ValueError(f"{self.name} has no variable scope before its first call")
        return str(self._scope.name)

    @property
    def weights(self) -> List[Any]:
        """The same as `variables`."""
        return list(self.variables)

    @property
    def trainable_weights(self) -> List[Any]:
        """The same as `trainable_variables`."""
        return list(self.trainable_variables)

    def build(self, input_shape: Any) -> None:
        """Creates the variables.

        Args:
          input_shape: The shape of the inputs. The last dimension must be known.

        Raises:
          ValueError: It is not.
        """
        self.built = True

    call: Callable[..., Any]
    """What the layer computes, with variables that are there."""

    def _computed(self, inputs: Any, scope: Any, *arguments: Any) -> Any:
        """What `call` computes of inputs and arguments. The first time, creates the variables."""
        inputs = self._tensor(inputs)
        if self.rank is not None and inputs.shape.rank != self.rank:
            unknown = inputs.shape.rank is None
            found = "an unknown rank" if unknown else f"shape {inputs.shape}"
            raise ValueError(f"{self.name}: inputs must have rank {self.rank}, got {found}")
        self._determine_scope(scope)
        with tf.name_scope(self.name):
            if not self.built:
                if self._dtype is None:
                    self._dtype = inputs.dtype
                self.build(inputs.shape)
            return self.call(inputs, *arguments)

    def add_variable(self, name: str, shape: List[int], initializer: Any = None) -> Any:
        """Creates a variable in the layer's scope, or finds it there.

        The attribute of that name keeps it. Object-based checkpoints call it by this name, too.

        Args:
          name: The name within the scope.
          shape: The shape.
          initializer: By default that of the variable scope, otherwise Glorot's uniform one.
        """
        self._determine_scope(None)
        self._dtype = dtype = self._dtype or tf.float32
        with tf.init_scope():  # A loop's body or a tf.function may be what is being built.
            if tf.executing_eagerly():
                variable = self._eager_variable(name, shape, dtype, initializer)
            else:
                reuse = True if self.built else self._reuse
                with tf.compat.v1.variable_scope(
                    self._scope, reuse=reuse, auxiliary_name_scope=False
                ):
                    variable = tf.compat.v1.get_variable(name, shape, dtype, initializer)
            setattr(self, name, variable)
        return variable

    def _eager_variable(self, name: str, shape: List[int], dtype: Any, initializer: Any) -> Any:
        """A variable outside graphs, where variable scopes keep nothing."""
        make = initializer or self._scope.initializer or tf.compat.v1.glorot_uniform_initializer()
        with tf.name_scope(self.scope_name + "/"):
            return tf.Variable(make(shape, dtype=dtype), name=name)

    def _determine_scope(self, scope: Any) -> None:
        if self._scope is not None:
            return
        if scope is None and (self._reuse or not _in_graph_of_version_1()):
            # To be unique is for graphs. Elsewhere nothing is found by name, and a number would
            # depend on what else the process has made.
            scope = self.name
        with tf.compat.v1.variable_scope(scope, default_name=self.name) as captured:
            self._scope = captured

    def _tensor(self, inputs: Any) -> Any:
        """Inputs as a tensor. Tensors and arrays have a type; numbers get that of the layer."""
        dtype = None if hasattr(inputs, "dtype") else self._dtype
        return tf.convert_to_tensor(inputs, dtype=dtype, name="inputs")


def _in_graph_of_version_1() -> bool:
    """Whether variables are made in a graph, by name: not so eagerly and in a `tf.function`."""
    with tf.init_scope():
        return not tf.executing_eagerly()


def input_size(layer: Layer, input_shape: Any) -> int:
    """The last dimension of the shape of a layer's inputs.

    Raises:
      ValueError: It is unknown.
    """
    shape = tf.TensorShape(input_shape)
    size = None if shape.rank is None else tf.compat.dimension_value(shape[-1])
    if size is None:
        raise ValueError(
            f"{layer.name}: the last dimension of the inputs, input_size, must be known when the "
            f"variables are created, got shape {shape}"
        )
    return int(size)
