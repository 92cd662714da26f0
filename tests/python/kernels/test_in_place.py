"""The gradients of sequences work in the memory of saved gates, and nobody can see it.

Whoever else uses the same tensor, before or after, finds its values unchanged; and the gradients
are the same bit for bit wherever the gates came from, whether their memory could be taken or not.
"""

import functools

import numpy as np
import pytest
import tensorflow as tf

from blockcell.op_table import BLOCK_GRU_GRAD, BLOCK_LSTM_GRAD, BLOCK_LSTM_GRAD_V2, OPS
from blockcell_tools.reference.inputs import inputs_of
from helpers import grids, kernels

TF1 = tf.__version__.startswith("1.")
LSTM_GATES, GRU_GATES = ("i", "f", "o", "ci"), ("r", "u", "c", "hc")
WORKED_IN = {
    BLOCK_LSTM_GRAD: LSTM_GATES,
    BLOCK_LSTM_GRAD_V2: LSTM_GATES,
    BLOCK_GRU_GRAD: GRU_GATES,
}
SIZES = (6, 9, 19, 5, 4)


def copies(feeds, one):
    """Temporaries with the values of placeholders: nothing else refers to their memory."""
    return {name: feed * tf.cast(one, feed.dtype) for name, feed in feeds.items()}


# Each of these makes tensors of the saved gates from their placeholders and values, and returns the
# tensors, and those whose values are looked at after the op has run.


def fed(feeds, values, one):
    return feeds, feeds


def constants(feeds, values, one):
    tensors = {name: tf.constant(value) for name, value in values.items()}
    return tensors, tensors


def variables(use_resource, feeds, values, one):
    variables = {
        name: tf.compat.v1.get_variable(name, initializer=value, use_resource=use_resource)
        for name, value in values.items()
    }
    return {name: variable.value() for name, variable in variables.items()}, variables


def temporaries(feeds, values, one):
    return copies(feeds, one), {}


def temporaries_used_again(feeds, values, one):
    tensors = copies(feeds, one)
    return tensors, tensors


def one_temporary_for_all(feeds, values, one):
    """All gates of one tensor, as slices of it; a slice along the first axis shares its memory."""
    names = list(feeds)
    together = tf.stack([feeds[name] for name in names]) * tf.cast(one, feeds[names[0]].dtype)
    return {name: together[k] for k, name in enumerate(names)}, {"together": together}


def other_shapes(feeds, values, one):
    """Reshaped tensors share their memory with what they came from."""
    flat = {name: tf.reshape(copy, [-1]) for name, copy in copies(feeds, one).items()}
    return {name: tf.reshape(flat[name], tf.shape(feeds[name])) for name in flat}, flat


SOURCES = {
    "fed": fed,
    "constants": constants,
    "variables": functools.partial(variables, True),
    "old_variables": functools.partial(variables, False),
    "temporaries": temporaries,
    "temporaries_used_again": temporaries_used_again,
    "one_temporary_for_all": one_temporary_for_all,
    "other_shapes": other_shapes,
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("op, dtype, on", grids.variants(WORKED_IN))
def test_nobody_sees_it(op, dtype, on, source):
    inputs = inputs_of(op, *SIZES, dtype=dtype, **on)
    want = kernels.run(op, inputs, **on)
    with tf.Graph().as_default() as graph, kernels.labelled():
        feeds = {name: tf.compat.v1.placeholder(value.dtype) for name, value in inputs.items()}
        one = tf.compat.v1.placeholder(tf.float32)
        gates = WORKED_IN[op]
        tensors, seen = SOURCES[source](
            {name: feeds[name] for name in gates}, {name: inputs[name] for name in gates}, one
        )
        gradients = kernels.call(op, {**feeds, **tensors}, **on)
        with tf.control_dependencies(list(gradients.values())):
            afterwards = {name: tf.identity(tensor) for name, tensor in seen.items()}
        initialize = tf.compat.v1.global_variables_initializer()
    with tf.compat.v1.Session(graph=graph) as session:
        session.run(initialize)
        feed = {one: 1.0, **{feeds[name]: value for name, value in inputs.items()}}
        for _ in range(2):  # What the first run spoils, the second would show.
            got, after = session.run([gradients, afterwards], feed)
            assert_same(got, want)
            if "together" in after:
                after = dict(zip(gates, after["together"]))
            for name, value in after.items():
                np.testing.assert_array_equal(value.ravel(), inputs[name].ravel(), err_msg=name)


def assert_same(got, want):
    for name in want:
        np.testing.assert_array_equal(got[name], want[name], err_msg=name)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("op, dtype, on", grids.variants(WORKED_IN))
def test_after_the_forward_op(op, dtype, on, keep):
    """As in training: the gates come straight from the forward op, fetched or not."""
    forward = OPS[op].forward
    options = {} if op == BLOCK_GRU_GRAD else {"cell_clip": 0.0}
    inputs = inputs_of(op, *SIZES, dtype=dtype, **on)
    first = {name: inputs[name] for name in OPS[forward].inputs}
    saved = kernels.run(forward, first, **on, **options)
    incoming = {name: inputs[name] for name in inputs if name not in first and name not in saved}
    in_op = {name: saved[name] for name in OPS[op].inputs if name in saved}
    want = kernels.run(op, {**first, **in_op, **incoming}, **on)
    with tf.Graph().as_default() as graph, kernels.labelled():
        feeds = {name: tf.compat.v1.placeholder(value.dtype) for name, value in inputs.items()}
        outputs = kernels.call(forward, {name: feeds[name] for name in first}, **on, **options)
        gates = {name: outputs[name] for name in in_op}
        given = {name: feeds[name] for name in (*first, *incoming)}
        gradients = kernels.call(op, {**given, **gates}, **on)
    with tf.compat.v1.Session(graph=graph) as session:
        feed = {feeds[name]: inputs[name] for name in given}
        got, kept = session.run([gradients, outputs if keep else {}], feed)
    assert_same(got, want)
    if keep:
        assert_same(kept, saved)


@pytest.mark.parametrize("op, dtype, on", grids.variants(WORKED_IN))
def test_the_same_tensor_for_several_gates(op, dtype, on):
    inputs = inputs_of(op, *SIZES, dtype=dtype, **on)
    first, *others = WORKED_IN[op]
    same = dict(inputs, **{name: inputs[first] for name in others})
    want = kernels.run(op, same, **on)
    with tf.Graph().as_default() as graph, kernels.labelled():
        feeds = {name: tf.compat.v1.placeholder(value.dtype) for name, value in inputs.items()}
        one = tf.compat.v1.placeholder(tf.float32)
        gate = copies({first: feeds[first]}, one)[first]
        gradients = kernels.call(op, dict(feeds, **dict.fromkeys(WORKED_IN[op], gate)), **on)
    with tf.compat.v1.Session(graph=graph) as session:
        feed = {one: 1.0, **{feeds[name]: value for name, value in inputs.items()}}
        assert_same(session.run(gradients, feed), want)


@pytest.mark.skipif(TF1, reason="TensorFlow 2 only")
@pytest.mark.parametrize("kind", ["constants", "variables"])
@pytest.mark.parametrize("op, dtype, on", grids.variants(WORKED_IN))
def test_nobody_sees_it_in_a_function(op, dtype, on, kind):
    """Tensors and variables outside of a tf.function, given to it or captured by it."""
    inputs = inputs_of(op, *SIZES, dtype=dtype, **on)
    want = kernels.run(op, inputs, **on)
    make = tf.constant if kind == "constants" else tf.Variable
    tensors = {name: tf.constant(value) for name, value in inputs.items()}
    tensors.update({name: make(inputs[name]) for name in WORKED_IN[op]})

    @tf.function
    def captured():
        with kernels.labelled():
            return kernels.call(op, {n: tf.convert_to_tensor(t) for n, t in tensors.items()}, **on)

    @tf.function
    def given(tensors):
        with kernels.labelled():
            return kernels.call(op, {n: tf.convert_to_tensor(t) for n, t in tensors.items()}, **on)

    for _ in range(2):
        for got in (captured(), given(tensors)):
            assert_same({name: value.numpy() for name, value in got.items()}, want)
            assert_same({name: tensors[name].numpy() for name in inputs}, inputs)
