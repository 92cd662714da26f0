"""The graph pass on cells as people write them: any biases and products, gates in any order."""

import numpy as np
import pytest

import own_cells
from blockcell_tools.reference.inputs import scaled_error
from helpers import isolated

STEPS = {"lstm": "BlockcellLSTMCell", "gru": "GRUBlockCell"}
PLAIN = {"lstm": "BlockcellLSTMCell", "gru": "BlockcellGRUCell"}
LAYERS = {"lstm": "BlockcellLSTMLayer", "gru": "BlockcellGRULayer"}
GRADIENTS = {"lstm": "BlockcellLSTMCellGrad", "gru": "BlockcellGRUCellGradC"}
NAMES = [*own_cells.ALL, *own_cells.RNNS]


@pytest.fixture(scope="module")
def stock():
    return isolated.run("own_cells", NAMES, {"BLOCKCELL_OVERRIDE": "0"})


@pytest.fixture(scope="module")
def rewritten():
    return isolated.run("own_cells", NAMES, {"BLOCKCELL_REWRITE": None})


@pytest.mark.parametrize("name", NAMES)
def test_same_values(stock, rewritten, name):
    got, want = isolated.value(rewritten[name]), isolated.value(stock[name])
    assert len(got["values"]) == len(want["values"])
    for one, other in zip(got["values"], want["values"]):
        assert np.abs(other).max() > 1e-3
        assert scaled_error(np.array(one), np.array(other)) < 2e-6


@pytest.mark.parametrize("name", own_cells.ALL)
def test_what_becomes_a_step(rewritten, name):
    cell, kind, loop, train, _ = own_cells.ALL[name]
    new = isolated.value(rewritten[name])["rewritten"]
    count = 1 if loop else own_cells.STEPS
    step = (PLAIN if kind in (*own_cells.TWO, *own_cells.FORMS) else STEPS)[cell]
    if kind in ("row", "one"):
        assert not new[step] and not new[LAYERS[cell]] and not new[GRADIENTS[cell]]
    elif train:
        assert (new[step], new[GRADIENTS[cell]]) == (count, count)
    elif loop or kind in own_cells.MASKED:
        assert new[step] == count
    else:
        assert new[LAYERS[cell]] == 1


@pytest.mark.parametrize("name", own_cells.RNNS)
def test_what_becomes_a_layer(rewritten, name):
    new = isolated.value(rewritten[name])["rewritten"]
    kind = own_cells.RNNS[name][0]
    layer = LAYERS["gru" if kind in own_cells.GRUS else "lstm"]
    # One number is added to all, as nothing else is.
    assert new[layer] == int(kind != "projected_added_to_one")
