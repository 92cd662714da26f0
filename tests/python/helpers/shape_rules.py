"""Wrong shapes and lengths of every kind, and what the library has to say about them."""

import functools

import numpy as np

from blockcell import op_table
from blockcell.op_table import OPS, SEQUENCES
from blockcell_tools.reference.inputs import inputs_of, shapes
from helpers import grids, sampling

BATCH, INPUT, CELL, TIME = 3, 2, 4, 5


def good_inputs(op, on, dtype=np.float32):
    """Inputs that the op accepts. The arrays are not to be written to."""
    return dict(_good_inputs(op, tuple(on.items()), dtype))


@functools.lru_cache(maxsize=None)
def _good_inputs(op, on, dtype):
    return inputs_of(op, BATCH, INPUT, CELL, TIME, dtype=dtype, **dict(on))


def _mutations(shape):
    """Wrong shapes made from a right one, by name."""
    yield "scalar", ()
    yield "rank-1", shape[1:]
    yield "rank+1", shape + (1,)
    yield "rank+1-in-front", (1,) + shape
    for axis, size in enumerate(shape):
        for change, other in (("+1", size + 1), ("-1", size - 1), ("=0", 0)):
            yield f"dim{axis}{change}", shape[:axis] + (other,) + shape[axis + 1 :]


def every_mutation(ops=tuple(OPS)):
    """Every wrong shape of every input: a name, the op, its attributes, the input, the shape."""
    for op in ops:
        for on in op_table.switches(op):
            for tensor, shape in shapes(op, BATCH, INPUT, CELL, TIME).items():
                shape = tuple(shape)
                for mutation, wrong in _mutations(shape):
                    if wrong != shape:
                        yield f"{grids.name(op, on=on)}-{tensor}-{mutation}", op, on, tensor, wrong


def some_mutations():
    """A sample: each input of each op with each switch, and each mutation of each op."""

    def features(case):
        name, op, on, tensor, _ = case
        return [(op, *on.values(), tensor), (op, name.split(f"-{tensor}-")[-1])]

    return sampling.sample(list(every_mutation()), features)


def mutated(op, on, tensor, shape, dtype=np.float32):
    """Good inputs but for one, which has another shape."""
    inputs = good_inputs(op, on, dtype)
    inputs[tensor] = np.ones(shape, inputs[tensor].dtype)
    return inputs


def complaint(op, on, inputs):
    """The message a call must be refused with, or None if its shapes and lengths agree.

    A symbol that stands alone in a dimension gets its number from the first tensor that fits.
    """
    numbers = {}
    for tensor, declared in OPS[op].inputs.items():
        dims, got = declared.shape, inputs[tensor].shape
        if tensor in op_table.any_length(op, on):
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
    return _complaint_about_lengths(op, inputs)


def _number_of(dim, numbers):
    try:
        return op_table.size_of(dim, numbers)
    except KeyError:
        return None


def _complaint_about_lengths(op, inputs):
    if op not in SEQUENCES:
        return None
    time = len(inputs["x"])
    tensor = OPS[op].length
    for index, got in np.ndenumerate(inputs[tensor]):
        if not 0 <= got <= time:
            place = f"{tensor}[{index[0]}]" if index else tensor
            return f"{op}: {place} must be between 0 and time = {time}, got {got}"
    return None
