"""Writes graphs of the gradient ops to files, in a process that knows nothing of the library.

The files are read by `takeover`, in another process. `BLOCKCELL_TEST_MODELS` names the folder.
"""

import os

import tensorflow as tf

import cases
from cases import GRU, LSTM

ATTRIBUTES = {GRU: {}, LSTM: {"use_peephole": True}}


def path(kind, op):
    return os.path.join(os.environ["BLOCKCELL_TEST_MODELS"], f"{kind}-{op}")


def node(op, inputs):
    """The op on the given tensors; a dictionary of its outputs."""
    return dict(getattr(tf.raw_ops, op)(**inputs, **ATTRIBUTES[op])._asdict())


def _placeholders(op):
    return {
        name: tf.compat.v1.placeholder(tf.float32, name="input_" + name)
        for name in cases.SHAPES[op]
    }


def write_graphs():
    """A GraphDef, a MetaGraph and a SavedModel of version 1, for each op."""
    for op in (GRU, LSTM):
        with tf.Graph().as_default() as graph:
            inputs = _placeholders(op)
            outputs = {
                name: tf.identity(output, name="output_" + name)
                for name, output in node(op, inputs).items()
            }
            with open(path("graph_def", op), "wb") as file:
                file.write(graph.as_graph_def().SerializeToString())
            tf.compat.v1.train.export_meta_graph(path("meta_graph", op))
            with tf.compat.v1.Session() as session:
                tf.compat.v1.saved_model.simple_save(
                    session, path("saved_model", op), inputs, outputs
                )


def write_functions():
    """A SavedModel of version 2 for each op."""
    for op in (GRU, LSTM):
        module = tf.Module()
        signature = {name: tf.TensorSpec(None, tf.float32) for name in cases.SHAPES[op]}
        module.run = tf.function(
            lambda inputs, op=op: node(op, inputs), input_signature=[signature]
        )
        tf.saved_model.save(module, path("saved_functions", op))
