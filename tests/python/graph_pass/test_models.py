"""The graph pass on models that people have, made small: see `models/write.py`.

Each runs in a process with TensorFlow's kernels and graphs and in one with ours. Frozen graphs get
several batches, with rows of different lengths and rows without a step.
"""

import numpy as np
import pytest

from blockcell_tools.reference.inputs import scaled_error
from helpers import isolated


def trained(steps, weights):
    """What the steps of plain LSTM cells become that are trained, with so many kernels."""
    cells = ("BlockcellLSTMCell", "BlockcellLSTMCellGrad", "BlockcellMatMulSlice")
    sums = ("BlockcellMatMulAddN", "BlockcellBiasAddGradAddN")
    return {**dict.fromkeys(cells, steps), **dict.fromkeys(sums, weights)}


# How many nodes of which ops the library puts into each.
NODES = {
    # Two layers in each of two directions, with projections, clips and skips.
    "bilm": {"BlockcellLSTMLayer": 4},
    "bilm_training": trained(4, 4),
    # The states of the first round are the memory of variables that get new states at the end.
    # The steps have read them by then; loops with such states do not become layers.
    "bilm_keeps_state": {"BlockcellLSTMCell": 4},
    # Two directions over characters, and two over words.
    "tagger": {"BlockcellLSTMLayer": 4},
    "tagger_training": trained(4, 4),
    # Two directions of the encoder, and two layers of the decoder.
    "zoneout": {"BlockcellLSTMCell": 4},
    "zoneout_training": trained(4, 4),
    # Two directions, and the decoder. Trained, they drop parts of the candidate.
    "sketch": {"BlockcellLSTMLayer": 3},
    "sketch_training": {},
    "sketch_normalized_training": {},
    # Two products, and gates in another order.
    "actor": {},
    "actor_training": {
        **trained(5, 2),
        "BlockcellMatMulSlice": 9,
        "BlockcellBiasAddGradAddN": 1,
    },
    # Steps with `where` between them.
    "impala": {"BlockcellLSTMCell": 1},
    "impala_training": trained(5, 1),
    "impala_block_training": {
        "BlockcellMatMulAddN": 1,
        "BlockcellMatMulSlice": 5,
        "BlockcellBiasAddGradAddN": 1,
    },
    "speech_old": {"BlockcellLSTMLayer": 2},
    "speech_old_training": trained(2, 2),
    "speech_plain": {"BlockcellLSTMLayer": 1},
    # The whole sequence is one op already.
    "speech_new": {},
    "speech_new_training": {},
    "crnn": {"BlockcellLSTMLayer": 4},
    "crnn_training": trained(4, 4),
    "lm_1b": {"BlockcellLSTMCell": 2},
    # One kernel in parts is one product; its gradient is one for each step.
    "lm_1b_training": {**trained(10, 2), "BlockcellMatMulAddN": 10},
    # The second GRU multiplies its update gate by a weight.
    "interest": {"BlockcellGRULayer": 1},
    "interest_training": {
        **dict.fromkeys(("GRUBlockCell", "BlockcellGRUCellGradC", "BlockcellGRUCellGradRU"), 1),
        "BlockcellMatMulAddN": 2,
        "BlockcellMatMulSlice": 2,
        "BlockcellBiasAddGradAddN": 2,
    },
    # The decoder asks its attention between the steps.
    "translation": {"BlockcellLSTMLayer": 3, "BlockcellLSTMCell": 2},
    "translation_training": trained(5, 5),
    # The encoder's two directions and both bars. The stack of a step for each bar stays.
    "music": {"BlockcellLSTMLayer": 4},
    "music_training": {
        "BlockcellMatMulAddN": 6,
        "BlockcellMatMulSlice": 8,
        "BlockcellBiasAddGradAddN": 6,
    },
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
            # The order of sums differs, also between instruction sets: with AVX2, a gradient
            # of `translation_training` differs by 2.2e-5.
            assert error <= 4e-5, f"batch {batch}, output {k}: scaled error {error:.3g}"
