"""The library comes after the ops have run on stock kernels, for `test_takeover`."""

import functools

import tensorflow as tf

import blockcell
import cases
import takeover
from graph_files import node


def eager_calls_before_loading():
    functions = {
        op: tf.function(
            functools.partial(node, op),
            input_signature=[{name: tf.TensorSpec(None, tf.float32) for name in cases.SHAPES[op]}],
        )
        for op in cases.SHAPES
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
