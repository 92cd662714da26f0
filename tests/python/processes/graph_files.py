"""Writes graphs of the stock ops to files, in a process that knows nothing of the library.

The files are read by `takeover`, in another process. `BLOCKCELL_TEST_MODELS` names the folder.
"""

import os

import tensorflow as tf

from blockcell import op_table
from blockcell.op_table import LENGTHS, OPS, STOCK

ATTRIBUTES = {op: op_table.switches(op)[-1] for op in STOCK}  # All vectors are used.


def path(kind, op):
    return os.path.join(os.environ["BLOCKCELL_TEST_MODELS"], f"{kind}-{op}")


def node(op, inputs):
    """The op on the given tensors; a dictionary of its outputs."""
    return dict(getattr(tf.raw_ops, op)(**inputs, **ATTRIBUTES[op])._asdict())


def types(op):
    """The type of every input of an op of floats."""
    return {name: tf.int64 if name in LENGTHS else tf.float32 for name in OPS[op].inputs}


def _placeholders(op):
    return {
        name: tf.compat.v1.placeholder(dtype, name="input_" + name)
        for name, dtype in types(op).items()
    }


def write_graphs():
    """A GraphDef, a MetaGraph and a SavedModel of version 1, for each op."""
    for op in STOCK:
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
    for op in STOCK:
        module = tf.Module()
        signature = {name: tf.TensorSpec(None, dtype) for name, dtype in types(op).items()}
        module.run = tf.function(
            lambda inputs, op=op: node(op, inputs), input_signature=[signature]
        )
        tf.saved_model.save(module, path("saved_functions", op))
