"""Wrong shapes made from a right one, and odd values of all kinds."""

import numpy as np

from blockcell import op_table

RANKS = range(6)
TIMES = 64

LENGTHS = (0, 1, -1, 2**31 - 1, -(2**31))
"""Numbers of steps for int32; those for int64 have some more."""
LONG_LENGTHS = (*LENGTHS, 2**31, 2**40, 2**63 - 1, -(2**63))

FLOATS = (0.0, -0.0, 1.2e-38, -1.0, 3e38, float("inf"), -float("inf"), float("nan"))
"""Values for attributes that are numbers. In its kernels TensorFlow takes smaller ones for 0."""


def wrong(shape):
    """Every wrong shape: pairs of a name and a shape, none of which is that one, none twice.

    Each rank from 0 to 5, each dimension one more and one less, 0, 1 and 64 times as large, the
    transpose, and shapes without elements.
    """
    seen = {tuple(shape)}
    for name, other in _all(tuple(shape)):
        if other not in seen:
            seen.add(other)
            yield name, other


def _all(shape):
    for rank in RANKS:
        ones = (1,) * (rank - len(shape))
        yield f"rank {rank}", (shape + ones)[:rank]
        yield f"rank {rank} in front", (ones + shape)[-rank:] if rank else ()
    for axis, size in enumerate(shape):
        for change, other in (
            ("one more", size + 1),
            ("one less", max(0, size - 1)),
            ("none", 0),
            ("one", 1),
            ("64 times", size * TIMES),
        ):
            yield f"dimension {axis} {change}", shape[:axis] + (other,) + shape[axis + 1 :]
    yield "transposed", shape[::-1]
    yield "empty", (0,) * len(shape)
    yield "an empty vector", (0,)


def odd_values(array):
    """Arrays with values that a kernel may stumble over: pairs of a name and an array.

    One element is no number or infinite, or all are too small for a normal number. Infinities
    are in the middle and at the end, where vectors are not full.
    """
    is_number = array.dtype.kind == "f" or array.dtype.type is op_table.BFLOAT16
    if not is_number or not array.size:
        return
    for name, value in (("NaN", np.nan), ("inf", np.inf), ("-inf", -np.inf)):
        for place, index in (("first", 0), ("last", array.size - 1)):
            odd = array.copy()
            odd.reshape(-1)[index] = value
            yield f"{name} in the {place} element", odd
    info = op_table.finfo(array.dtype)
    yield "denormals", (np.sign(array) * info.tiny / 4).astype(array.dtype)
    yield "zeros", np.zeros_like(array)
