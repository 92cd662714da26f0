"""Our kernels on a small grid of sizes, for `test_instruction_sets`."""

import blockcell
import cases
import grids
import kernels
import op_table
from op_table import OPS


def prepare():
    blockcell.load()


def instruction_set():
    return blockcell.info()["isa"]


def failures():
    """Runs every seventh size of the grids for all ops; returns what was not accurate."""
    found = []
    for op in OPS:
        for dtype in op_table.types(op):
            for on in op_table.switches(op):
                for at in grids.grid(op)[::7]:
                    inputs = cases.inputs_of(op, **at, dtype=dtype, seed=4, **on)
                    what = f"{grids.name(op, dtype, on)} {grids.sizes_id(at)}"
                    try:
                        got = kernels.run(op, inputs, **on)
                        cases.assert_accurate(op, inputs, got, grids.limit(op, dtype), what, **on)
                    except Exception as error:
                        found.append(f"{what}: {error}")
    return found
