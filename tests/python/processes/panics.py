"""Calls during which the library panics, as the variable FAILPOINTS says, for `test_panics`."""

import tensorflow as tf

import cases
import kernels
from cases import GRU, LSTM

ATTRIBUTES = {GRU: {}, LSTM: {"use_peephole": True}}
WORTH_SEVERAL_THREADS = {GRU: (64, 128, 256), LSTM: (512, 1, 512)}


def prepare():
    import os

    import blockcell

    blockcell.load(os.environ["BLOCKCELL_TEST_LIBRARY"])


def _panic_once(op):
    """The first call panics; returns its message. The second has to work."""
    inputs = cases.grad_inputs(op, *WORTH_SEVERAL_THREADS[op], **ATTRIBUTES[op])
    try:
        kernels.run(op, inputs, **ATTRIBUTES[op])
    except tf.errors.InternalError as error:
        message = str(error)
    else:
        raise AssertionError("no error")
    got = kernels.run(op, inputs, **ATTRIBUTES[op])
    cases.assert_close(got, cases.expected(op, inputs, **ATTRIBUTES[op]), 1e-6)
    return message


def gru():
    return _panic_once(GRU)


def lstm():
    return _panic_once(LSTM)
