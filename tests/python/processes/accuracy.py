"""Our kernels on a small grid of sizes, for `test_instruction_sets`."""

import blockcell
from blockcell_tools.reference.inputs import inputs_of
from helpers import checks, grids, kernels


def prepare():
    blockcell.load()


def instruction_set():
    return blockcell.info()["isa"]


def failures():
    """Runs a sample of the grids; returns what was not accurate."""
    found = []
    for op, dtype, on, at in grids.sample(grids.every_size(), whole=False):
        inputs = inputs_of(op, **at, dtype=dtype, seed=4, **on)
        what = f"{grids.name(op, dtype, on)} {grids.sizes_id(at)}"
        try:
            checks.assert_accurate(op, inputs, kernels.run(op, inputs, **on), what, **on)
        except Exception as error:
            found.append(f"{what}: {error}")
    return found
