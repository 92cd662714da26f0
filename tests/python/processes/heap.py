"""Digests of the results of every op, for `test_memory`, with whatever the heap holds."""

import hashlib

import tensorflow as tf

import blockcell
from helpers import every_op

# Outputs and scratch of all lengths: some fit in what malloc keeps of freed memory, others do not.
SIZES = (every_op.SMALL, every_op.Sizes(20, 65, 130, 3))


def prepare():
    blockcell.load(take_over=False)


def fill():
    """The bytes in a tensor that TensorFlow has allocated and nobody has written."""
    found = set()
    for count in (3, 40, 1000, 100000):
        with tf.Graph().as_default():
            tensor = tf.raw_ops.Empty(shape=[count], dtype=tf.uint8, init=False)
            with tf.compat.v1.Session() as session:
                found.update(session.run(tensor).tolist())
    return sorted(found)


def digests():
    """By the name of the call: all outputs, of two runs."""
    found = {}
    for sizes in SIZES:
        for call in every_op.calls(sizes):
            runner = every_op.Runner(call, threads=2)
            runs = [_digest(runner.values()) for _ in range(2)]
            found[f"{call.name} {tuple(sizes)}"] = runs
    return found


def _digest(outputs):
    return hashlib.sha256(b"".join(output.tobytes() for output in outputs)).hexdigest()
