"""Saves and loads models with the library's own op, for `test_saved_models`.

Saving and loading happen in processes of their own. `BLOCKCELL_TEST_MODELS` names the folder.
"""

import numpy as np
import tensorflow as tf

import blockcell
from blockcell.op_table import BLOCK_GRU, OPS
from blockcell_tools.reference.inputs import inputs_of
from graph_files import path, types
from helpers import checks, kernels

ON = {"reset_after": True}


def prepare():
    blockcell.load()


def node(inputs):
    return kernels.call(BLOCK_GRU, inputs, **ON)


def check(call):
    inputs = inputs_of(BLOCK_GRU, 3, 2, 4, time=5, **ON)
    got = {name: np.asarray(value) for name, value in call(inputs).items()}
    got = {name: got[name] for name in OPS[BLOCK_GRU].outputs}
    checks.assert_accurate(BLOCK_GRU, inputs, got, **ON)


def save_graph():
    """A SavedModel of version 1."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        inputs = {name: tf.compat.v1.placeholder(kind) for name, kind in types(BLOCK_GRU).items()}
        outputs = node(inputs)
        folder = path("saved_model", BLOCK_GRU)
        tf.compat.v1.saved_model.simple_save(session, folder, inputs, outputs)


def load_graph():
    def call(inputs):
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            folder = path("saved_model", BLOCK_GRU)
            meta = tf.compat.v1.saved_model.load(session, ["serve"], folder)
            signature = meta.signature_def["serving_default"]
            fetches = {name: info.name for name, info in signature.outputs.items()}
            fed = {signature.inputs[name].name: value for name, value in inputs.items()}
            return session.run(fetches, fed)

    check(call)


def save_function():
    """A SavedModel of version 2."""
    module = tf.Module()
    signature = {name: tf.TensorSpec(None, kind) for name, kind in types(BLOCK_GRU).items()}
    module.run = tf.function(node, input_signature=[signature])
    tf.saved_model.save(module, path("saved_functions", BLOCK_GRU))


def load_function():
    """It returns what it should, and can be differentiated."""
    model = tf.saved_model.load(path("saved_functions", BLOCK_GRU))
    check(lambda inputs: model.run({n: tf.constant(v) for n, v in inputs.items()}))
    inputs = inputs_of(BLOCK_GRU, 3, 2, 4, time=5, **ON)
    tensors = {name: tf.constant(value) for name, value in inputs.items()}
    found = []
    for call in (model.run, node):
        with tf.GradientTape() as tape:
            tape.watch(tensors["x"])
            loss = tf.reduce_sum(call(tensors)["h"] ** 2)
        found.append(tape.gradient(loss, tensors["x"]).numpy())
    np.testing.assert_allclose(*found, rtol=1e-5, atol=1e-6)
    assert found[0].any()
