"""All graphs of the package `traps` as functions, for `graph_pass/test_traps.py`."""

import blockcell
from traps import branches, depth, slices, stages, sums, variables, waiting  # noqa: F401
from traps.net import TRAPS


def prepare():
    blockcell.load()


globals().update(TRAPS)
