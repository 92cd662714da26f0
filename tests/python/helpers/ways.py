"""The ways in which TensorFlow takes gradients, of real ops and of plain ones.

A loss here is a function of a dictionary of tensors; what is to be differentiated is the tensors of
a floating point type. Gradients are dictionaries with an entry for each of these.
"""

import contextlib

import numpy as np
import tensorflow as tf

import blockcell
from blockcell import op_table
from helpers import kernels, plain_ops

TF1 = tf.__version__.startswith("1.")
PLAIN = {
    "GRUBlockCell": plain_ops.gru_block_cell,
    "LSTMBlockCell": plain_ops.lstm_block_cell,
    "BlockLSTM": plain_ops.block_lstm,
    "BlockLSTMV2": plain_ops.block_lstm_v2,
    "BlockGRU": plain_ops.block_gru,
    "BlockcellLSTM": plain_ops.lstm,
}


def floating(tensors):
    """Those that can be differentiated."""
    return {name: value for name, value in tensors.items() if name not in op_table.LENGTHS}


def weights(names, seed=11):
    """Random weights of the outputs of these names, all of the same few values."""
    random = np.random.RandomState(seed)
    return {name: 1 + random.standard_normal() for name in sorted(names)}


def loss_of(call, names):
    """A loss whose gradient with respect to each of the outputs depends on it, and on its element.

    Args:
      call: A function of a dictionary of tensors, which returns a dictionary of outputs.
      names: The outputs that take part.
    """
    factors = weights(names)

    def loss(tensors):
        outputs = call(tensors)
        terms = [
            tf.reduce_sum(factors[name] * outputs[name] * (outputs[name] + factors[name]))
            for name in sorted(names)
        ]
        return tf.add_n(terms)

    return loss


def penalty_of(gradients, loss):
    """A loss that involves all elements of all gradients of another loss, squared."""

    def penalty(tensors):
        found = gradients(loss, tensors)
        factors = weights(found, seed=12)
        terms = [
            tf.reduce_sum(factors[name] * value * value)
            for name, value in sorted(found.items())
            if value is not None
        ]
        return tf.add_n(terms)

    return penalty


def by_gradients(loss, tensors):
    """`tf.gradients`, in a graph or in a function."""
    names = list(floating(tensors))
    return dict(zip(names, tf.gradients(loss(tensors), [tensors[name] for name in names])))


def by_tape(loss, tensors):
    sources = floating(tensors)
    with tf.GradientTape() as tape:
        tape.watch(sources)
        value = loss(tensors)
    return tape.gradient(value, sources)


def by_tape_around_function(loss, tensors):
    """The loss is a function that does not know the shapes of the tensors."""
    signature = {name: tf.TensorSpec(None, value.dtype) for name, value in tensors.items()}
    return by_tape(tf.function(loss, input_signature=[signature]), tensors)


# How to compute with a function that takes gradients. All return NumPy arrays, and zeros for None.


def _filled(gradients, inputs):
    return {
        name: np.zeros_like(inputs[name]) if value is None else np.asarray(value)
        for name, value in gradients.items()
    }


@contextlib.contextmanager
def our_graph():
    """A graph in which all ops that the library has kernels for run on these."""
    with tf.Graph().as_default() as graph:
        ours = [op for op in op_table.STOCK if op in blockcell.info()["ops"]]
        with graph._kernel_label_map({op: kernels.OURS for op in ours}):
            yield graph


def run_graph(gradients, loss, inputs):
    """A graph of placeholders of unknown shape, and a session."""
    with our_graph() as graph:
        feeds = {name: tf.compat.v1.placeholder(value.dtype) for name, value in inputs.items()}
        found = gradients(loss, feeds)
        fetches = {name: value for name, value in found.items() if value is not None}
    with tf.compat.v1.Session(graph=graph) as session:
        found.update(session.run(fetches, {feeds[name]: inputs[name] for name in inputs}))
    return _filled(found, inputs)


def run_eagerly(gradients, loss, inputs):
    tensors = {name: tf.constant(value) for name, value in inputs.items()}
    return _filled(gradients(loss, tensors), inputs)


def run_function(gradients, loss, inputs):
    """All in one function that does not know the sizes."""
    signature = {n: tf.TensorSpec([None] * value.ndim, value.dtype) for n, value in inputs.items()}

    @tf.function(input_signature=[signature])
    def run(tensors):
        return {n: value for n, value in gradients(loss, tensors).items() if value is not None}

    found = run({name: tf.constant(value) for name, value in inputs.items()})
    return _filled({name: found.get(name) for name in floating(inputs)}, inputs)


# Each way: how to take gradients, and how to run it.
WAYS = {"graph": (by_gradients, run_graph)}
if not TF1:
    WAYS.update(
        tape=(by_tape, run_eagerly),
        tape_around_function=(by_tape_around_function, run_eagerly),
        tape_in_function=(by_tape, run_function),
        gradients_in_function=(by_gradients, run_function),
        tape_in_graph=(by_tape, run_graph),
    )


def first_order(way, loss, inputs):
    gradients, run = WAYS[way]
    return run(gradients, loss, inputs)


def second_order(way, loss, inputs):
    """The gradients of a penalty on the gradients of `loss`."""
    gradients, run = WAYS[way]
    return run(gradients, penalty_of(gradients, loss), inputs)


def truth(op, inputs, names, attributes, order=1):
    """What `first_order` or `second_order` has to return for a loss on outputs of an op."""
    return true_gradients(loss_of(plain(op, attributes), names), inputs, order)


def true_gradients(loss, inputs, order=1):
    """The gradients in float64 of a loss on plain ops, or of penalties on penalties on it."""
    for _ in range(order - 1):
        loss = penalty_of(by_gradients, loss)
    with tf.Graph().as_default() as graph:
        found = by_gradients(loss, in_float64(inputs))
        fetches = {name: value for name, value in found.items() if value is not None}
    with tf.compat.v1.Session(graph=graph) as session:
        found.update(session.run(fetches))
    return _filled(found, inputs)


def in_float64(inputs):
    """Inputs for plain ops."""
    return {
        name: value if name in op_table.LENGTHS else tf.constant(value.astype(np.float64))
        for name, value in inputs.items()
    }


def plain(op, attributes):
    """The op in plain ops, as a function for `loss_of`."""
    return lambda tensors: PLAIN[op](**tensors, **attributes)


def real(op, attributes):
    """The op as a function for `loss_of`."""
    return lambda tensors: kernels.call(op, tensors, **attributes)
