"""Which shapes are measured: the usual ones, all, a random sample, or rows that grow."""

from typing import NamedTuple, Optional

import numpy as np

from blockcell_tools.bench.ops import Workload
from blockcell_tools.bench.tables import OPS


class Shape(NamedTuple):
    """The sizes of a case."""

    time: Optional[int]
    batch: int
    input_size: int
    cell_size: int


def _square(*sizes):
    """A shape whose input is as wide as its cell: batch and size, or time, batch and size."""
    time = sizes[0] if len(sizes) == 3 else None
    return Shape(time, sizes[-2], sizes[-1], sizes[-1])


_USUAL_CELLS = (
    *((1, 128), (20, 200), (32, 256), (64, 512)),
    *((20, 650), (20, 1500), (128, 1024)),
)
_USUAL_SEQUENCES = (
    *((20, 20, 200), (35, 20, 650), (35, 20, 1500)),
    *((50, 32, 256), (100, 64, 512), (50, 1, 256)),
)
_INFERENCE_SEQUENCES = (
    *((50, 1, 64), (50, 1, 128), (50, 1, 256), (50, 1, 512)),
    *((50, 4, 128), (50, 8, 128), (50, 8, 256), (20, 20, 200)),
    *((50, 32, 256), (35, 20, 650), (100, 64, 512)),
)
_MORE_BATCHES = (1, 2, 8, 256)
_MORE_SIZES = (64, 128, 1024, 2048)

USUAL = {
    False: tuple(_square(*sizes) for sizes in _USUAL_CELLS),
    True: tuple(_square(*sizes) for sizes in _USUAL_SEQUENCES),
}
"""The usual shapes by `Op.is_sequence`: language models small to large, and a batch of one."""

INFERENCE = tuple(_square(*sizes) for sizes in _INFERENCE_SEQUENCES)
"""Sequences as they are inferred: mostly with few rows."""


def _all_shapes():
    """The usual shapes and more, each once, by `Op.is_sequence`."""
    grid = [_square(batch, size) for batch in _MORE_BATCHES for size in _MORE_SIZES]
    # A grid of sequences would take hours on the stock kernels: vary one size at a time.
    cross = [_square(20, batch, 256) for batch in _MORE_BATCHES]
    cross += [_square(20, 16, size) for size in _MORE_SIZES]
    return {
        False: tuple(dict.fromkeys([*USUAL[False], *grid])),
        True: tuple(dict.fromkeys([*USUAL[True], *cross])),
    }


ALL = _all_shapes()
"""The usual shapes and more: small and large batches and cells; by `Op.is_sequence`."""


def named(chosen, is_sequence):
    """The shapes that a list of them, or of "all", stands for."""
    return ALL[is_sequence] if "all" in chosen else chosen


def cell_shape(text):
    """Batch, input and cell size of `BxC` or `BxDxC`; ValueError if it is none."""
    sizes = _sizes(text, (2, 3), "20x200 or 20x100x200")
    return Shape(None, sizes[0], sizes[1], sizes[-1])


def sequence_shape(text):
    """Time, batch, input and cell size of `TxBxC` or `TxBxDxC`; ValueError if it is none."""
    sizes = _sizes(text, (3, 4), "35x20x200 or 35x20x100x200")
    return Shape(sizes[0], sizes[1], sizes[2], sizes[-1])


def _sizes(text, lengths, example):
    try:
        sizes = [int(size) for size in text.split("x")]
    except ValueError:
        sizes = []
    if len(sizes) not in lengths or min(sizes) < 1:
        raise ValueError(f"{text!r} is no shape such as {example}")
    return sizes


def peephole_values(op, peephole):
    """Values of `use_peephole` for an op; unless told, sequences are measured without only."""
    if not op.has_peephole:
        return [False]
    return peephole or ([False] if op.is_sequence else [False, True])


def cases(names, dtypes, peephole, shapes):
    """All cases of these ops, dtypes and shapes.

    Args:
      names: Names of ops.
      dtypes: Names of dtypes; an op is left out for those that it does not have.
      peephole: Values of `use_peephole`; None for the usual ones.
      shapes: Lists of `Shape` by `Op.is_sequence`.

    Returns:
      A list of `Workload`, with the shapes of one op and variant next to each other.
    """
    return [
        Workload(op, dtype, use_peephole, *shape)
        for op in (OPS[name] for name in names)
        for dtype in dtypes
        if dtype in op.dtypes
        for use_peephole in peephole_values(op, peephole)
        for shape in shapes[op.is_sequence]
    ]


def workload_of_call(call):
    """The case of a `blockcell_tools.verification.Case`."""
    sizes = call.sizes
    return Workload(
        OPS[call.op],
        {"float32": "float32", "float16": "half"}[call.dtype],
        bool(call.attributes.get("use_peephole")),
        sizes.get("time"),
        *(sizes[name] for name in ("batch", "input_size", "cell_size")),
    )


LARGEST_BATCH, LARGEST_SIZE, LONGEST = 300, 2100, 8
"""Bounds of a random sample."""

SEQUENCE_EVERY = 4
"""One in so many random shapes is measured as a sequence, too."""


def random_cases(names, dtypes, peephole, count, seed):
    """Cases at random sizes, odd ones included: so many for each single-step op.

    Every other shape has small and large sizes alike (evenly in their logarithm), the others are
    evenly spread, which makes most of them large. `use_peephole` is drawn, too.

    Args:
      names: Names of ops.
      dtypes: Names of dtypes; an op is left out for those that it does not have.
      peephole: Values of `use_peephole` to draw from; None for both.
      count: Number of shapes.
      seed: Of the draw: the same one gives the same cases, whatever the other arguments are.

    Returns:
      A list of `Workload`, with one shape's next to each other.
    """
    random = np.random.RandomState(seed)
    found = []
    for number in range(count):
        draw = _evenly if number % 2 else _in_logarithm
        largest = (LONGEST, LARGEST_BATCH, LARGEST_SIZE, LARGEST_SIZE)
        time, batch, input_size, cell_size = (draw(random, bound) for bound in largest)
        drawn = random.uniform()
        for op in (OPS[name] for name in names):
            if op.is_sequence and number % SEQUENCE_EVERY:
                continue
            choices = (peephole or [False, True]) if op.has_peephole else [False]
            found += [
                Workload(
                    op,
                    dtype,
                    choices[int(drawn * len(choices))],
                    time if op.is_sequence else None,
                    *(batch, input_size, cell_size),
                )
                for dtype in dtypes
                if dtype in op.dtypes
            ]
    return found


def _evenly(random, largest):
    return int(random.randint(1, largest + 1))


def _in_logarithm(random, largest):
    return min(int(np.exp(random.uniform(0.0, np.log(largest + 1)))), largest)


MOST_ROWS = 4096
"""Rows at which `linear_cases` end."""

LINEAR_SIZE, LINEAR_TIME = 128, 4
"""Input and cell size of those; and time while the batch of a sequence grows."""


def linear_cases(names, dtypes, peephole):
    """Cases whose rows double from 1 to `MOST_ROWS`: in the batch, and, of sequences, in time.

    Args:
      names: Names of ops.
      dtypes: Names of dtypes; an op is left out for those that it does not have.
      peephole: Values of `use_peephole`; None for False only.

    Returns:
      A list of `Workload`, with those of one line next to each other.
    """
    rows = [1 << power for power in range(MOST_ROWS.bit_length())]
    in_time = [_square(count, 1, LINEAR_SIZE) for count in rows]
    in_batch = [
        _square(LINEAR_TIME, count // LINEAR_TIME, LINEAR_SIZE)
        for count in rows
        if count > LINEAR_TIME
    ]
    shapes = {False: [_square(count, LINEAR_SIZE) for count in rows], True: in_time + in_batch}
    return cases(names, dtypes, peephole or [False], shapes)
