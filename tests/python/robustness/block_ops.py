"""Cases of the ops in the table: cells, sequences and their gradients."""

import functools
import itertools

import numpy as np

from blockcell import op_table
from blockcell.op_table import OPS, SEQUENCES
from blockcell_tools.reference.inputs import accuracy, expected, inputs_of, limit
from helpers import grids, shape_rules
from robustness import judging, shapes
from robustness.judging import Case

SIZES = (shape_rules.BATCH, shape_rules.INPUT, shape_rules.CELL, shape_rules.TIME)


def cases(op):
    """Every case of an op."""
    for _, dtype, on in op_table.variants([op]):
        yield from _cases_of(op, dtype, on)


def _cases_of(op, dtype, on):
    def case(what, make, attributes=on, how=_is_accurate):
        what = f"{grids.name(op, dtype, on)}: {what}"
        problem = functools.partial(shape_rules.complaint, op, on)
        return Case(op, what, make, attributes, problem, functools.partial(how, op, attributes))

    def replaced(tensor, value):
        return dict(shape_rules.good_inputs(op, on, dtype), **{tensor: value})

    good = functools.partial(shape_rules.good_inputs, op, on, dtype)
    yield case("good", good)
    for tensor, shape in shape_rules.shapes(op, *SIZES).items():
        for what, other in shapes.wrong(shape):
            make = functools.partial(shape_rules.mutated, op, on, tensor, other, dtype)
            yield case(f"{tensor}, {what}", make)
    for sizes in itertools.product(*((0, size) for size in SIZES)):
        make = functools.partial(inputs_of, op, *sizes, dtype=dtype, **on)
        yield case(f"sizes {sizes}", make)
    yield from _lengths(op, dtype, on, case)
    for tensor, value in good().items():
        for what, odd in shapes.odd_values(value):
            make = functools.partial(replaced, tensor, odd)
            yield case(f"{tensor}, {what}", make, how=_is_the_same)
    for name in ("cell_clip", "forget_bias"):
        if name in OPS[op].attributes:
            for number in shapes.FLOATS:
                yield case(f"{name} {number}", good, dict(on, **{name: number}), _is_the_same)


def _lengths(op, dtype, on, case):
    """Numbers of steps at all extremes: of all rows, and of the last one."""
    if op not in SEQUENCES:
        return
    tensor = OPS[op].length
    right = shape_rules.good_inputs(op, on, dtype)[tensor]
    steps = (*shapes.LONG_LENGTHS, shape_rules.TIME - 1, shape_rules.TIME, shape_rules.TIME + 1)
    for number in steps:
        for place in [...] if right.ndim == 0 else [..., -1]:
            value = right.copy()
            value[place] = number
            make = functools.partial(_with_length, op, on, dtype, tensor, value)
            yield case(f"{tensor}[{place}] is {number}", make)


def _with_length(op, on, dtype, tensor, value):
    """Of a gradient the saved steps are those of the length, where that can be."""
    at = value if (value >= 0).all() and (value <= shape_rules.TIME).all() else None
    inputs = inputs_of(op, *SIZES, length=at, dtype=dtype, **on)
    return dict(inputs, **{tensor: value})


def _is_accurate(op, attributes, inputs, got):
    names = list(OPS[op].outputs)
    if len(got) != len(names):
        return f"{len(got)} outputs"
    try:
        found = accuracy(op, inputs, dict(zip(names, got)), **attributes)
    except ValueError as error:
        return str(error)
    wrong = [str(one) for one in found if not one.accurate]
    return "; ".join(wrong) or None


def _is_the_same(op, attributes, inputs, got):
    """As above, where numbers may be none, infinite or very small."""
    dtype = inputs["x"].dtype
    with np.errstate(all="ignore"):
        want = expected(op, inputs, **attributes)
    return judging.inaccuracy(got, want, dtype, 2 * limit(op, dtype.type))
