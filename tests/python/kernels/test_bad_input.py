"""Malformed calls: each is refused with a message, the process lives and the next call works."""

import numpy as np
import pytest
import tensorflow as tf

from blockcell import op_table
from blockcell.op_table import LENGTHS, OPS, SEQUENCES
from blockcell_tools.reference.inputs import inputs_of
from helpers import checks, grids, isolated, kernels, shape_rules


def assert_works(op, on, inputs):
    checks.assert_accurate(op, inputs, kernels.run(op, inputs, **on), op, **on)


def assert_refused(op, on, inputs, message):
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        kernels.run(op, inputs, **on)
    assert message in str(error.value)


@pytest.mark.parametrize(
    "op, on, tensor, wrong",
    [pytest.param(*rest, id=name) for name, *rest in shape_rules.some_mutations()],
)
def test_wrong_shape(op, on, tensor, wrong):
    inputs = shape_rules.mutated(op, on, tensor, wrong)
    message = shape_rules.complaint(op, on, inputs)
    if message is None:
        # Vectors that are not used may have any length; x alone tells how long a sequence is.
        assert tensor in op_table.any_length(op, on) or (tensor == "x" and op in SEQUENCES)
        assert_works(op, on, inputs)
    else:
        assert_refused(op, on, inputs, message)
    kernels.run(op, shape_rules.good_inputs(op, on), **on)


HALVES = [
    pytest.param(op, on, tensor, id=f"{grids.name(op, np.float16, on)}-{tensor}")
    for op, dtype, on in op_table.variants()
    for tensor in OPS[op].inputs
    if dtype == np.float16 and on.get(OPS[op].switch, True) and tensor not in LENGTHS
]


@pytest.mark.parametrize("op, on, tensor", HALVES)
def test_wrong_shape_of_half(op, on, tensor):
    inputs = shape_rules.good_inputs(op, on, np.float16)
    inputs[tensor] = inputs[tensor][..., :-1]
    assert_refused(op, on, inputs, shape_rules.complaint(op, on, inputs))


BEYOND = (-1, shape_rules.TIME + 1, 2**31, 2**40, 2**63 - 1, -(2**63))


@pytest.mark.parametrize("length", BEYOND)
@pytest.mark.parametrize("op, dtype, on", grids.variants(SEQUENCES))
def test_length_out_of_range(op, dtype, on, length):
    good = shape_rules.good_inputs(op, on, dtype)
    inputs = {name: value.copy() for name, value in good.items()}
    tensor = OPS[op].length
    inputs[tensor][... if tensor == "seq_len_max" else 2] = length
    place = tensor if tensor == "seq_len_max" else tensor + "[2]"
    message = f"{op}: {place} must be between 0 and time = {shape_rules.TIME}, got {length}"
    assert shape_rules.complaint(op, on, inputs) == message
    assert_refused(op, on, inputs, message)
    kernels.run(op, good, **on)


@pytest.mark.parametrize("length", (-1, 1))
@pytest.mark.parametrize("op, dtype, on", grids.variants(SEQUENCES))
def test_length_of_a_sequence_without_steps(op, dtype, on, length):
    if OPS[op].length == "sequence_length":
        batch, tensor = 1, "sequence_length[0]"
    else:
        batch, tensor = 0, "seq_len_max"  # Even where there is nothing to compute.
    inputs = inputs_of(op, batch, 2, 4, time=0, dtype=dtype, **on)
    inputs[tensor.split("[")[0]][...] = length
    assert_refused(op, on, inputs, f"{tensor} must be between 0 and time = 0, got {length}")


# Sizes of 0.

EMPTY = [(0, 2, 4, 5), (3, 0, 4, 5), (3, 2, 0, 5), (3, 2, 4, 0)]
EMPTY += [(0, 0, 4, 5), (0, 2, 0, 5), (3, 0, 0, 5), (0, 2, 4, 0), (3, 0, 0, 0), (0, 0, 0, 5)]
EMPTY += [(0, 0, 0, 0)]


@pytest.mark.parametrize("op, dtype, on", grids.variants())
def test_empty_but_consistent_shapes_succeed(op, dtype, on):
    for sizes in EMPTY:
        # Filled memory, so that an output nobody wrote to would not look like zeros.
        kernels.run(op, inputs_of(op, 3, 2, 4, 5, seed=5, dtype=dtype, **on), **on)
        inputs = inputs_of(op, *sizes, dtype=dtype, **on)
        got = kernels.run(op, inputs, **on)
        checks.assert_accurate(op, inputs, got, f"{op} {sizes}", **on)


HUGE = [
    f"{place}_{op}"
    for place in ("one_huge_tensor", "huge_but_empty", "overflow", "long_but_empty")
    for op in (OPS if place != "long_but_empty" else SEQUENCES)
]


@pytest.fixture(scope="module")
def huge():
    return isolated.run("huge", HUGE)


@pytest.mark.parametrize("name", HUGE)
def test_huge_sizes(huge, name):
    isolated.value(huge[name])
