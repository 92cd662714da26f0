"""The graph pass on models that people have, made small: see `models/write.py`.

Each runs in a process with TensorFlow's kernels and graphs and in one with ours. Frozen graphs get
several batches, with rows of different lengths and rows without a step.
"""

import numpy as np
import pytest

from blockcell_tools.reference.inputs import scaled_error
from helpers import isolated

# How many nodes of which ops the library puts into each.
NODES = {
    # Two layers in each of two directions, with clips.
    "bilm": {"BlockcellLSTMCell": 4},
    "bilm_training": {
        "BlockcellLSTMCell": 4,
        "BlockcellLSTMCellGrad": 4,
        "BlockcellMatMulAddN": 4,
        "BlockcellMatMulSlice": 4,
        "BlockcellBiasAddGradAddN": 4,
    },
    # The states of the first round are the memory of variables that get new states at the end.
    # The steps have read them by then; loops with such states do not become layers.
    "bilm_keeps_state": {"BlockcellLSTMCell": 4},
    # Two directions over characters, and two over words.
    "tagger": {"BlockcellLSTMLayer": 4},
    "tagger_training": {
        "BlockcellLSTMCell": 4,
        "BlockcellLSTMCellGrad": 4,
        "BlockcellMatMulAddN": 4,
        "BlockcellMatMulSlice": 4,
        "BlockcellBiasAddGradAddN": 4,
    },
    # Two directions of the encoder, and two layers of the decoder.
    "zoneout": {"BlockcellLSTMCell": 4},
}


@pytest.fixture(scope="module")
def stock():
    return isolated.run("model_graphs", list(NODES), {"BLOCKCELL_OVERRIDE": "0"})


@pytest.fixture(scope="module")
def rewritten():
    return isolated.run("model_graphs", list(NODES), {"BLOCKCELL_REWRITE": None})


@pytest.mark.parametrize("name", NODES)
def test_same_results(stock, rewritten, name):
    got, want = isolated.value(rewritten[name]), isolated.value(stock[name])
    assert {op: count for op, count in got["rewritten"].items() if count} == NODES[name]
    assert not any(want["rewritten"].values())
    assert len(got["values"]) == len(want["values"])
    for batch, (ours, theirs) in enumerate(zip(got["values"], want["values"])):
        assert any(np.any(value) for value in theirs)
        for k, (value, stock_value) in enumerate(zip(ours, theirs)):
            assert np.shape(value) == np.shape(stock_value)
            error = scaled_error(value, stock_value)
            assert error <= 2e-5, f"batch {batch}, output {k}: scaled error {error:.3g}"
