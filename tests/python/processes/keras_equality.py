"""Outputs and gradients of Keras layers, on Keras's own path and on the kernels.

For each layer and case of `helpers.keras_cases` there is a function `LAYER-CASE`.
"""

import functools

import numpy as np
import tensorflow as tf

import blockcell
import keras_models
from blockcell_tools.reference.inputs import scaled_error
from helpers import keras_cases
from keras_models import KERAS2, on_kernels, random, with_random_weights


def mask_of(case):
    if case.mask is None:
        return None
    mask = np.array([[step == "1" for step in row] for row in keras_cases.MASKS[case.mask]])
    return tf.constant(mask.T if case.arguments.get("time_major") else mask)


def make(name, case):
    kind, arguments = keras_cases.LAYERS[name]
    arguments = dict(arguments, **case.arguments)
    if "dtype" in arguments and KERAS2:
        arguments["dtype"] = tf.keras.mixed_precision.Policy(arguments["dtype"])
    keras_models.seed(3)
    if kind.endswith("Cell"):
        of_cell = {key: arguments[key] for key in keras_cases.OF_CELL if key in arguments}
        cell = getattr(tf.keras.layers, kind)(case.sizes[3], **of_cell)
        for key in keras_cases.OF_CELL[:-1]:
            arguments.pop(key, None)
        layer = tf.keras.layers.RNN(cell, **arguments)
    else:
        layer = getattr(tf.keras.layers, kind)(case.sizes[3], **arguments)
    if case.bidirectional is not None:
        layer = tf.keras.layers.Bidirectional(layer, **case.bidirectional)
    elif case.zero_output_for_mask:
        layer.zero_output_for_mask = True
    return layer


def results(name, case, call):
    """All outputs of a layer, and the gradients with respect to inputs, states and weights."""
    batch, time, input_size, units = case.sizes
    layer = make(name, case)
    shape = [time, batch, input_size] if case.arguments.get("time_major") else case.sizes[:3]
    inputs = [tf.constant(random(*shape, seed=k)) for k in range(case.calls)]
    states = None
    if case.initial_state:
        states = [tf.constant(random(batch, units, seed=5 + k)) for k in range("LSTM" in name)]
        states += [tf.constant(random(batch, units, seed=7))]
    mask = mask_of(case)
    with_random_weights(layer, inputs[0].shape)
    keras_models.seed(4)

    def run(*inputs):
        with tf.GradientTape() as tape:
            tape.watch([inputs, states or []])
            outputs = []
            for x in inputs:
                found = layer(x, mask=mask, training=case.training, initial_state=states)
                outputs += found if isinstance(found, (list, tuple)) else [found]
            loss = tf.add_n(
                [
                    tf.reduce_sum(tf.cast(one, tf.float32) * random(*one.shape, seed=20 + k))
                    for k, one in enumerate(outputs)
                ]
            )
        sources = list(inputs) + (states or []) + list(variables(layer))
        return outputs + tape.gradient(loss, sources)

    return [value.numpy() for value in call(run)(*inputs)]


def variables(layer):
    """The layer's weights as TensorFlow's variables, without the states."""
    for weight in layer.trainable_weights:
        yield getattr(weight, "value", weight) if not KERAS2 else weight


def check(name, case, call=lambda run: run):
    want = results(name, case, call)
    with on_kernels() as calls:
        got = results(name, case, call)
    expected = case.calls * (2 if case.bidirectional is not None else 1)
    assert len(calls) == expected, f"the kernels served {len(calls)} calls, not {expected}"
    assert len(got) == len(want)
    for number, (ours, stock) in enumerate(zip(got, want)):
        error = scaled_error(ours, stock)
        assert ours.dtype == stock.dtype
        assert error <= case.limit, f"result {number} of {len(want)}: scaled error {error:.3g}"
    assert any(np.abs(value).max() > 0.01 for value in want)


def _functions():
    for layer, name in keras_cases.names(KERAS2):
        yield f"{layer}-{name}", functools.partial(check, layer, keras_cases.CASES[name])
    for layer in keras_cases.LAYERS:
        for name in ("sequences_and_states", "mask_with_gaps", "mask_last_output"):
            in_function = functools.partial(tf.function, autograph=False)
            case = keras_cases.CASES[name]
            yield f"{layer}-{name}-function", functools.partial(check, layer, case, in_function)


globals().update(_functions())


def states_that_would_grow_behind_the_end():
    """A short row beside a long one: nothing bounds its state, which would become infinite."""
    x = random(2, 60, 3)
    x[0], x[1] = 0.0, 1e10 * np.abs(x[1])
    mask = np.arange(60) < [[60], [3]]

    def run():
        layer = with_random_weights(
            tf.keras.layers.LSTM(6, activation="relu", use_bias=False), x.shape
        )
        layer.set_weights([np.abs(weights) for weights in layer.get_weights()])
        with tf.GradientTape() as tape:
            h = layer(tf.constant(x), mask=tf.constant(mask))
        return [value.numpy() for value in [h, *tape.gradient(h, list(variables(layer)))]]

    want = run()
    with on_kernels() as calls:
        got = run()
    assert len(calls) == 1 and np.abs(want[0]).max() > 1e9
    for ours, stock in zip(got, want):
        assert np.isfinite(stock).all() and scaled_error(ours, stock) < 1e-5


def prepare():
    blockcell.load()
