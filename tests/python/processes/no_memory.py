"""Calls of ops that there is no memory for, for `test_memory`."""

import tensorflow as tf

import blockcell
import huge
from blockcell.op_table import OPS, SEQUENCES
from blockcell_tools.reference.inputs import shapes


def prepare():
    blockcell.load()


def outputs_too_large():
    """Inputs without elements, and outputs of more bytes than a process can have addresses for."""
    for op in SEQUENCES:
        if OPS[op].forward:
            continue  # Its outputs are as large as inputs.
        try:
            huge.run_on_zeros(op, shapes(op, 2, 0, 4, 2**45), 1)
        except tf.errors.ResourceExhaustedError:
            huge.assert_works(op)
        else:
            raise AssertionError(f"{op} had memory")
