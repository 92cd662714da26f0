"""Malformed eager calls of unlabelled nodes, for `takeover`."""

import numpy as np
import tensorflow as tf

from blockcell import op_table
from blockcell.op_table import OPS, SEQUENCES
from helpers import checks, kernels, shape_rules


def wrong_shapes():
    """Wrong shapes, without the shape functions that a graph would run first."""
    for name, op, attributes, tensor, wrong in shape_rules.some_mutations():
        inputs = shape_rules.mutated(op, attributes, tensor, wrong)
        _refuses(name, op, attributes, inputs, shape_rules.complaint(op, attributes, inputs))


def wrong_lengths():
    """Every op that has lengths."""
    for op in SEQUENCES:
        for on in op_table.switches(op):
            tensor = OPS[op].length
            for length in (-1, shape_rules.TIME + 1, 2**62):
                inputs = shape_rules.good_inputs(op, on)
                inputs[tensor] = np.full_like(inputs[tensor], length)
                message = shape_rules.complaint(op, on, inputs)
                assert "must be between 0 and time" in message
                _refuses(f"{op} {length}", op, on, inputs, message)


def _refuses(name, op, attributes, inputs, message):
    """Whether an eager call fails with a message; without one, it has to work."""
    try:
        got = kernels.call(op, inputs, **attributes)
    except tf.errors.InvalidArgumentError as error:
        assert message is not None and message in str(error), f"{name}: {error}"
    else:
        assert message is None, f"{name} was accepted"
        got = {output: value.numpy() for output, value in got.items()}
        checks.assert_accurate(op, inputs, got, name, **attributes)
