"""All graphs of the package `traps` as functions, for `graph_pass/test_traps.py`."""

import blockcell
from traps import (  # noqa: F401
    branches,
    cells,
    depth,
    slices,
    stages,
    sums,
    variables,
    waiting,
)
from traps.net import TRAPS


def prepare():
    blockcell.load()


globals().update(TRAPS)
