"""The library comes after the ops have run on stock kernels, for `test_takeover`."""

import functools

import tensorflow as tf

import blockcell
import takeover
from blockcell.op_table import STOCK
from graph_files import node, types


def eager_calls_before_loading():
    functions = {
        op: tf.function(
            functools.partial(node, op),
            input_signature=[{n: tf.TensorSpec(None, dtype) for n, dtype in types(op).items()}],
        )
        for op in STOCK
    }

    def call(op, inputs):
        return functions[op](inputs)

    takeover.prove_eager(node, ours=False)
    takeover.prove_eager(call, ours=False)
    blockcell.load()
    takeover.prove_eager(node)
    takeover.prove_eager(call)


def session_before_loading():
    takeover.prove_graph(node, ours=False)
    blockcell.load()
    takeover.prove_graph(node)
