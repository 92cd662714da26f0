"""Wrong shapes of every kind, and what the library has to say about them."""

import numpy as np

import cases
from cases import GRU, LSTM, SHAPES

BATCH, INPUT, CELL = 3, 2, 4


def _mutations(shape):
    """Wrong shapes made from a right one, by name."""
    yield "scalar", ()
    yield "rank-1", shape[1:]
    yield "rank+1", shape + (1,)
    yield "rank+1-in-front", (1,) + shape
    for axis, size in enumerate(shape):
        for change, other in (("+1", size + 1), ("-1", size - 1), ("=0", 0)):
            yield f"dim{axis}{change}", shape[:axis] + (other,) + shape[axis + 1 :]


def every_mutation():
    """Every wrong shape of every input: a name, the op, its attributes, the input, the shape."""
    for op, attributes in (
        (GRU, {}),
        (LSTM, {"use_peephole": False}),
        (LSTM, {"use_peephole": True}),
    ):
        for tensor, shape in cases.shapes(op, BATCH, INPUT, CELL).items():
            shape = tuple(shape)
            for mutation, wrong in _mutations(shape):
                if wrong != shape:
                    variant = "-peephole" if attributes.get("use_peephole") else ""
                    name = f"{op}{variant}-{tensor}-{mutation}"
                    yield name, op, attributes, tensor, wrong


def complaint(op, use_peephole, inputs):
    """The message a call must be refused with, or None if its shapes agree.

    A symbol that stands alone in a dimension gets its number from the first tensor that fits.
    """
    numbers = {}
    for tensor, dims in SHAPES[op].items():
        got = inputs[tensor].shape
        if tensor in cases.PEEPHOLES and not use_peephole:
            if len(got) == 1:
                continue
            return f"{op}: {tensor} must have shape [any length], got {list(got)}"
        known = [_number_of(dim, numbers) for dim in dims]
        if len(got) == len(dims) and all(n in (None, m) for n, m in zip(known, got)):
            numbers.update(zip(dims, got))
            continue
        symbols = ", ".join(dims)
        sizes = ", ".join("?" if n is None else str(n) for n in known)
        sizes = f" = [{sizes}]" if any(n is not None for n in known) else ""
        return f"{op}: {tensor} must have shape [{symbols}]{sizes}, got {list(got)}"
    return None


def _number_of(dim, numbers):
    try:
        return eval(dim, {}, numbers)
    except NameError:
        return None


def good_inputs(op, attributes, dtype=np.float32):
    return cases.grad_inputs(op, BATCH, INPUT, CELL, dtype=dtype, **attributes)
