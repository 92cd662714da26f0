"""Layers that are called with inputs, states and masks of all shapes and types.

For each seed there are two functions. `drawn_SEED` checks that outputs and gradients on the kernels
are those of Keras's own path, or both refuse the call. `graph_SEED` returns what Keras's own path
gives, on which graph passes work.
"""

import functools
import logging
import re

import numpy as np
import tensorflow as tf

import blockcell
import keras_models
from blockcell_tools.reference.inputs import scaled_error
from helpers import keras_cases, keras_inputs
from keras_models import KERAS2, on_kernels, random, with_random_weights

LIMIT = 2e-5
OURS = r"its (inputs|mask|initial state [hc]) must have shape\] \[[\d ]+\] \[got\] \[[\d ]+\]"


def make(case):
    kind, arguments = keras_cases.LAYERS[case.layer]
    arguments = dict(arguments, return_state=True, **case.arguments)
    keras_models.seed(3)
    if kind.endswith("Cell"):
        own = {"reset_after": arguments.pop("reset_after")} if "reset_after" in arguments else {}
        cell = getattr(tf.keras.layers, kind)(keras_inputs.UNITS, **own)
        layer = tf.keras.layers.RNN(cell, name="inner", **arguments)
    else:
        layer = getattr(tf.keras.layers, kind)(keras_inputs.UNITS, name="inner", **arguments)
    layer.zero_output_for_mask = case.zero_output_for_mask
    if case.is_bidirectional:
        layer = tf.keras.layers.Bidirectional(layer)
    rows = keras_inputs.BATCH if case.arguments.get("stateful") else None
    order = [1, 0, 2] if case.arguments.get("time_major") else [0, 1, 2]
    shape = [rows, None, keras_inputs.INPUT_SIZE]
    return with_random_weights(layer, [shape[axis] for axis in order])


def tensor(case, given, seed):
    """A tensor, and what a function knows of it."""
    known = [None] * min(given.unknown, len(given.shape)) + list(given.shape[given.unknown :])
    values = random(*given.shape, seed=seed)
    if given is case.mask or given.dtype == "int32":
        values = values > -0.7
    if given is case.mask and values.ndim == 2 and not case.arguments["return_sequences"]:
        # Padding on the right alone: then functions of Keras 2 may run cuDNN's ops.
        values[:, 0] = True
        values = np.logical_and.accumulate(values, axis=1)
    order = list(range(len(given.shape)))
    if case.arguments.get("time_major") and given in (case.x, case.mask) and len(order) > 1:
        order[:2] = [1, 0]
    dtype = tf.as_dtype(given.dtype)
    value = tf.constant(np.transpose(values, order).astype(dtype.as_numpy_dtype))
    return value, tf.TensorSpec([known[axis] for axis in order], dtype)


def results(case):
    """All outputs, and the gradients with respect to inputs, states and weights."""
    layer = make(case)
    given = [case.x, *(case.states or []), *([] if case.mask is None else [case.mask])]
    tensors, specs = zip(*[tensor(case, one, seed) for seed, one in enumerate(given)])
    count = len(case.states or [])
    variables = [one if KERAS2 else one.value for one in layer.trainable_weights]

    def forward(x, *others):
        states, mask = list(others[:count]) or None, others[count] if others[count:] else None
        return list(layer(x, mask=mask, initial_state=states))

    def backward(*given):
        sources = [one for one in given if one.dtype == tf.float32] + variables
        with tf.GradientTape() as tape:
            tape.watch(sources)
            loss = tf.add_n([tf.reduce_sum(one * tf.sin(one + 1)) for one in forward(*given)])
        return tape.gradient(loss, sources)

    found = []
    for run in (forward, backward):
        if case.in_function:
            run = tf.function(run, input_signature=specs, autograph=False)
        try:
            layer.reset_states() if case.arguments.get("stateful") else None
            found.append([None if value is None else value.numpy() for value in run(*tensors)])
        except Exception as error:
            found.append(error)
    return found


def compare(want, got, calls, all_calls):
    if isinstance(want, Exception):
        assert isinstance(got, Exception), f"Keras refuses it: {want}"
        is_ours = re.search(OURS, str(got)) and "inner" in str(got)
        assert is_ours or calls < all_calls, f"{got}\nin place of\n{want}"
        return
    if isinstance(got, Exception):
        raise got
    assert len(got) == len(want)
    for number, (ours, stock) in enumerate(zip(got, want)):
        assert (ours is None) == (stock is None), number
        if ours is not None:
            assert ours.dtype == stock.dtype and ours.shape == stock.shape, number
            error = scaled_error(ours, stock)
            assert error <= LIMIT, f"result {number} of {len(want)}: scaled error {error:.3g}"


def check(seed):
    case = keras_inputs.drawn(seed, KERAS2)
    want = results(case)
    with on_kernels() as calls:
        got = results(case)
    each = 2 if case.is_bidirectional else 1
    compare(want[0], got[0], len(calls), 2 * each)
    # Some gradients of what broadcasts Keras cannot compute.
    if isinstance(want[0], Exception) or not isinstance(want[1], Exception):
        compare(want[1], got[1], len(calls), 2 * each)
    return {"served": len(calls) == 2 * each, "refused": isinstance(want[0], Exception)}


def graph(seed):
    """Outputs and gradients as lists, None for those that cannot be computed."""
    return [
        None
        if isinstance(found, Exception)
        else [value.tolist() for value in found if value is not None]
        for found in results(keras_inputs.drawn(seed, KERAS2))
    ]


def prepare():
    logging.getLogger("blockcell").setLevel(logging.ERROR)
    blockcell.load()


for _seed in range(2000):
    globals()[f"drawn_{_seed}"] = functools.partial(check, _seed)
    globals()[f"graph_{_seed}"] = functools.partial(graph, _seed)
