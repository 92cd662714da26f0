"""Calls of ops that there is no memory for, for `test_memory`."""

from concurrent.futures import ThreadPoolExecutor

import tensorflow as tf

import blockcell
import huge
from blockcell.op_table import OPS, SEQUENCES
from blockcell_tools.reference.inputs import shapes
from helpers import sampling


def prepare():
    blockcell.load()


def outputs_too_large():
    """Inputs without elements, and outputs of more bytes than a process can have addresses for."""
    # The outputs of the others are as large as inputs.
    ops = [op for op in SEQUENCES if not OPS[op].forward]
    # TensorFlow 2 waits ten seconds before it says that there is no memory, call after call.
    if not sampling.WHOLE and not tf.__version__.startswith("1."):
        ops = ops[-1:]
    with ThreadPoolExecutor(len(ops)) as pool:
        list(pool.map(_has_none, ops))


def _has_none(op):
    try:
        huge.run_on_zeros(op, shapes(op, 2, 0, 4, 2**45), 1)
    except tf.errors.ResourceExhaustedError:
        huge.assert_works(op)
    else:
        raise AssertionError(f"{op} had memory")
