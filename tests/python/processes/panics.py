"""Calls during which the library panics, as the variable FAILPOINTS says, for `test_panics`."""

import functools
import os

import tensorflow as tf

import blockcell
import layers
from blockcell import op_table
from blockcell.op_table import GRU_CELL, GRU_CELL_GRAD, OPS, SEQUENCES
from blockcell_tools.reference.inputs import inputs_of
from helpers import checks, kernels

PASSES_FAIL = True


def prepare():
    blockcell.load(os.environ["BLOCKCELL_TEST_LIBRARY"])


def sizes(op):
    """Sizes that are worth several threads."""
    if op in SEQUENCES:
        return (64, 128, 256, 3)
    return (64, 128, 256) if op in (GRU_CELL_GRAD, GRU_CELL) else (512, 1, 512)


def _panic_once(op):
    """The first call panics; returns its message. The second has to work."""
    on = op_table.switches(op)[-1]
    inputs = inputs_of(op, *sizes(op), **on)
    try:
        kernels.run(op, inputs, **on)
    except tf.errors.InternalError as error:
        message = str(error)
    else:
        raise AssertionError("no error")
    checks.assert_accurate(op, inputs, kernels.run(op, inputs, **on), op, **on)
    return message


for _op in OPS:
    globals()[_op] = functools.partial(_panic_once, _op)


def in_a_pass():
    """A graph that a failed pass has left as it was, and how many passes have failed."""
    outcome = layers.block_cells_gru_dynamic_beside_a_split()
    return dict(outcome, failed=blockcell.info()["failed_passes"])
