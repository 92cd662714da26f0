"""The sizes and variants that kernels are tried on."""

import random

import numpy as np
import pytest

from blockcell import op_table
from blockcell.op_table import SEQUENCES
from helpers import sampling

# Sizes of cells: batch, input_size, cell_size.
BATCH, INPUT, CELL = (0, 1, 2, 3, 20), (0, 1, 7, 16, 33), (0, 1, 15, 16, 17, 64, 130)
LARGE = [(64, 128, 256), (7, 300, 513), (200, 65, 129), (512, 1, 512)]
CELL_GRID = [(b, d, c) for b in BATCH for d in INPUT for c in CELL] + LARGE

# Sizes of sequences: every cell_size with every time, the others drawn. The length is that of
# seq_len_max, or of all rows; None stands for all steps, or lengths drawn for each row.
SEQUENCE_CELL, TIME = (0, 1, 7, 8, 9, 15, 16, 17, 31, 33), (0, 1, 2, 5, 17)
LARGE_SEQUENCES = [(20, 200, 65, 6, None), (64, 31, 130, 3, None), (2, 3, 5, 150, 140)]


def _sequences():
    draw = random.Random(1)
    for cell_size in SEQUENCE_CELL:
        for time in TIME:
            batch, input_size = draw.choice((0, 1, 3, 5, 20)), draw.choice((0, 1, 7, 16, 17, 33))
            length = draw.choice((None, None, 0, min(1, time), max(0, time - 1), time))
            yield batch, input_size, cell_size, time, length


SEQUENCE_GRID = list(_sequences()) + LARGE_SEQUENCES


def grid(op):
    """Sizes to try an op on: dictionaries of arguments for `inputs_of`."""
    names = ("batch", "input_size", "cell_size", "time", "length")
    sizes = SEQUENCE_GRID if op in SEQUENCES else CELL_GRID
    return [dict(zip(names, at)) for at in sizes]


def sizes_id(at):
    """Sizes as words: 3x2x4x5-all."""
    words = "x".join(str(at[name]) for name in at if name != "length")
    return words + (f"-{at['length']}" if at.get("length") is not None else "")


def name(op, dtype=np.float32, on=()):
    """A variant in words: BlockLSTM-float16-use_peephole."""
    types = [np.dtype(dtype).name] * (dtype != np.float32)
    return "-".join([op] + types + [key for key in on if on[key]])


def variants(ops=tuple(op_table.OPS)):
    """Parameters (op, element type, attributes) for a test."""
    return [pytest.param(*variant, id=name(*variant)) for variant in op_table.variants(ops)]


def every_size(ops=tuple(op_table.OPS)):
    """All of (op, element type, attributes, sizes)."""
    return [(*variant, at) for variant in op_table.variants(ops) for at in grid(variant[0])]


def sample(cases, whole=sampling.WHOLE):
    """A sample of what `every_size` returns.

    It has each size of the grids with each op, type and switch, and each large shape with each op.
    """
    return sampling.sample(cases, _features, whole)


def sampled(cases):
    """Parameters for a test: a sample of what `every_size` returns."""
    return [
        pytest.param(*case, id=name(*case[:3]) + "-" + sizes_id(case[3])) for case in sample(cases)
    ]


def _features(case):
    op, dtype, on, at = case
    sizes = tuple(at.values())
    if sizes in LARGE + LARGE_SEQUENCES:
        return [(op, sizes)]
    variant = (op, dtype, *on.values())
    return [(variant, axis, at[axis]) for axis in at]


# Against a stock kernel. It is off by up to 2.3e-6 in float; in half, which it accumulates in half,
# by up to 2e-2.
STOCK_LIMIT = {np.float32: 4e-6, np.float16: 3e-2}
