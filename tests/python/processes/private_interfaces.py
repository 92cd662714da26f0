"""A program that uses all of the package, where TensorFlow or Keras lacks a private interface."""

import functools
import logging
import os
import sys
import tempfile
import unittest.mock

import numpy as np
import tensorflow as tf

import blockcell
from blockcell import tf_internals
from blockcell_tools import graph_nodes

_ERRORS = (AttributeError, TypeError)
"""An interface is not there, or takes other arguments."""
NUMBERS = np.ones([4, 5, 3], "f")


def taken_away(name):
    """A context in which one function of `tf_internals` does not find what it looks for."""
    look_up = tf_internals._of

    def missing(owner, *names):
        if sys._getframe(1).f_code.co_name == name:
            raise _ERRORS[len(name) % 2](f"taken away: {names[-1]}")
        return look_up(owner, *names)

    return unittest.mock.patch.object(tf_internals, "_of", missing)


def program(name):
    """What the package does without an interface: the warnings that it logs."""
    warnings = []
    handler = logging.Handler()
    handler.emit = lambda record: warnings.append(record.getMessage())
    logging.getLogger("blockcell").addHandler(handler)
    with taken_away(name):
        blockcell.load()
        if not tf.__version__.startswith("1."):
            use_keras()
        read_a_file()
        asked = tf_internals.INTERFACES[name]
        try:
            compare()
        except tf_internals.MissingInterfaceError as error:
            assert asked.name in str(error)
            warnings.append(str(error))
    return [line for line in warnings if line.startswith(tf_internals.WARNING)]


def use_keras():
    """Values are Keras's, whatever runs the layers."""
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [layers.LSTM(4, return_sequences=True), layers.GRU(4), layers.Dense(1)]
    )
    model.compile("sgd", "mse")
    want = model.predict(NUMBERS, verbose=0)
    with blockcell.keras.enable():
        np.testing.assert_allclose(model.predict(NUMBERS, verbose=0), want, atol=1e-5)
        model.fit(NUMBERS, NUMBERS[:, 0, :1], verbose=0)
        str(blockcell.keras.report(model))
        with tempfile.TemporaryDirectory() as folder:
            tf.saved_model.save(model, folder)
            with open(os.path.join(folder, "saved_model.pb"), "rb") as file:
                assert b"BlockGRU" not in file.read()


def read_a_file():
    """A graph's file is read, also where that of a SavedModel cannot be."""
    with tf.Graph().as_default() as graph, tempfile.TemporaryDirectory() as folder:
        tf.compat.v1.placeholder(tf.float32, [2, 3], name="x")
        tf.io.write_graph(graph, folder, "graph.pb", as_text=False)
        (found,) = graph_nodes.meta_graphs(os.path.join(folder, "graph.pb"))
        assert [node.name for node in found.graph_def.node] == ["x"]


def compare():
    """The kernels beside TensorFlow's, as `blockcell verify` runs them."""
    from blockcell_tools import labelled_calls

    with tf.Graph().as_default(), labelled_calls.labelled():
        tf.zeros([1])


for _name in tf_internals.INTERFACES:
    globals()["without_" + _name] = functools.partial(program, _name)
