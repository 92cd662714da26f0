"""Our kernels on a small grid of sizes, for `test_instruction_sets`."""

import blockcell
from blockcell.reference import op_table
from blockcell.reference.inputs import inputs_of
from blockcell.reference.op_table import OPS
from helpers import checks, grids, kernels


def prepare():
    blockcell.load()


def instruction_set():
    return blockcell.info()["isa"]


def failures():
    """Runs every seventh size of the grids for all ops; returns what was not accurate."""
    found = []
    for op in OPS:
        for dtype in op_table.OPS[op].dtypes:
            for on in op_table.switches(op):
                for at in grids.grid(op)[::7]:
                    inputs = inputs_of(op, **at, dtype=dtype, seed=4, **on)
                    what = f"{grids.name(op, dtype, on)} {grids.sizes_id(at)}"
                    try:
                        got = kernels.run(op, inputs, **on)
                        checks.assert_accurate(op, inputs, got, what, **on)
                    except Exception as error:
                        found.append(f"{what}: {error}")
    return found
