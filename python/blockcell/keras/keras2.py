"""Keras 2, in TensorFlow 2.4 to 2.15: the method `call` of a layer, on the kernels.

Keras chooses between its paths in `call`, by the layer's arguments, and only some of the paths are
functions with a name of their own. So the method is replaced.
"""

from typing import Any, Callable

import tensorflow as tf

from blockcell.keras import dispatch, kinds

OTHERS = ("ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D")


def replacement(stock: Callable[..., Any], of_rnn: bool) -> Callable[..., Any]:
    """As `environment.hooks_of_version` says."""
    # Keras reads the names of the arguments.
    if not of_rnn:

        def call(
            self: Any,
            inputs: Any,
            mask: Any = None,
            training: Any = None,
            initial_state: Any = None,
        ) -> Any:
            return _call(self, stock, inputs, mask, training, initial_state)

        return call

    def call_of_rnn(
        self: Any,
        inputs: Any,
        mask: Any = None,
        training: Any = None,
        initial_state: Any = None,
        constants: Any = None,
    ) -> Any:
        is_called_by_another = isinstance(self, (tf.keras.layers.LSTM, tf.keras.layers.GRU))
        # A cell of Keras's takes no constants, which is an error.
        if is_called_by_another or constants is not None or getattr(self, "_num_constants", None):
            options = {"training": training, "initial_state": initial_state}
            return stock(self, inputs, mask=mask, constants=constants, **options)
        return _call(self, stock, inputs, mask, training, initial_state)

    return call_of_rnn


@tf.autograph.experimental.do_not_convert
def _call(
    layer: Any, stock: Callable[..., Any], inputs: Any, mask: Any, training: Any, states: Any
) -> Any:
    x = inputs[0] if isinstance(inputs, (list, tuple)) else inputs
    options = {"mask": mask, "training": training, "initial_state": states}
    # None leaves it to the phase of the graph, and a tensor to a run.
    infers = isinstance(training, (bool, int)) and not training
    if dispatch.refused(layer, x, infers):
        return stock(layer, inputs, **options)
    x, states, _ = layer._process_inputs(inputs, states, None)
    given = dispatch.given(layer, x, states, mask)
    if dispatch.misfits(layer, given):
        return stock(layer, inputs, **options)
    given = given._replace(x=_dropped_out(layer, given.x, training))
    result = dispatch.run(layer, given, infers)
    if layer.stateful:
        layer.add_update(
            [
                tf.compat.v1.assign(variable, tf.cast(state, variable.dtype))
                for variable, state in zip(layer.states, result.states)
            ]
        )
    output = result.outputs if layer.return_sequences else result.last_output
    return [output] + result.states if layer.return_state else output


def _dropped_out(layer: Any, x: Any, training: Any) -> Any:
    """The inputs after dropout, drawn as Keras draws it.

    Its two paths differ: one draws for each step, the other once for all steps.
    """
    gates = 4 if kinds.of(layer) == kinds.LSTM else 3
    if getattr(layer, "_could_use_gpu_kernel", False):
        layer.reset_dropout_mask()
        masks = layer.get_dropout_mask_for_cell(x, training, count=gates)
        return x if masks is None else x * masks[0]
    layer._maybe_reset_cell_dropout_mask(layer.cell)
    time = 0 if layer.time_major else 1
    step = tf.gather(x, 0, axis=time)
    masks = layer.cell.get_dropout_mask_for_cell(step, training, count=gates)
    return x if masks is None else x * tf.expand_dims(masks[0], time)
