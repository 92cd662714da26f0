"""The graph pass that puts one node in place of a loop over a sequence.

Frozen graphs of TensorFlow 1.15. Each runs with TensorFlow's kernels and graphs and with ours, on
well-formed and malformed inputs.
"""

import numpy as np
import pytest
import tensorflow as tf

from helpers import isolated
from helpers.checks import assert_same_outcome

LSTM, GRU, CELL = "BlockcellLSTMLayer", "BlockcellGRULayer", "BlockcellLSTMCell"
NORMALIZED = "BlockcellLayerNormLSTMLayer"

# The nodes that the graphs get.
GRAPHS = {
    "basic": {LSTM: 1},
    "basic_lengths": {LSTM: 1},
    "fixed": {LSTM: 1},
    "fixed_lengths": {LSTM: 1},
    "peepholes": {LSTM: 1},
    "initial_state": {LSTM: 1},
    "two_layers": {LSTM: 2},
    "two_layers_lengths": {LSTM: 2},
    "both_directions": {LSTM: 2},
    "half": {LSTM: 1},
    "gru": {GRU: 1},
    "gru_lengths": {GRU: 1},
    "gru_half": {GRU: 1},
    "gru_two_layers": {GRU: 2},
    "gru_only_the_state": {GRU: 1},
    "relu": {LSTM: 1},
    "linear": {LSTM: 1},
    "gru_relu": {GRU: 1},
    "layer_norm": {NORMALIZED: 1},
    "layer_norm_two_layers": {NORMALIZED: 2},
    "layer_norm_fixed": {NORMALIZED: 1},
    "lists_layer_norm": {NORMALIZED: 1},
    "in_a_branch": {GRU: 1},
    "in_another_loop": {LSTM: 1},
    # TensorFlow's own cells.
    "block": {LSTM: 1},
    "block_lengths": {LSTM: 1},
    "block_peepholes": {LSTM: 1},
    "block_half": {LSTM: 1},
    "block_two_layers": {LSTM: 2},
    "block_both_directions": {LSTM: 1, GRU: 1},
    "block_state_of_one_row": {LSTM: 1},
    "block_gru": {GRU: 1},
    "block_gru_two_layers": {GRU: 2},
    "lists_block": {LSTM: 1},
    "lists_block_peepholes": {LSTM: 1},
    "lists_block_gru_two_layers": {GRU: 2},
    "static_block": {LSTM: 1},
    "static_block_peepholes": {LSTM: 1},
    "static_block_two_layers": {LSTM: 2},
    "static_block_gru": {GRU: 1},
    # The rounds read the variables.
    "resources_block": {LSTM: 1},
    "resources": {LSTM: 1},
    "resources_gru": {GRU: 1},
    # Loops of TensorFlow 2.
    "lists_basic": {LSTM: 1},
    "lists_basic_lengths": {LSTM: 1},
    "lists_fixed": {LSTM: 1},
    "lists_fixed_lengths": {LSTM: 1},
    "lists_peepholes": {LSTM: 1},
    "lists_two_layers_lengths": {LSTM: 2},
    "lists_half": {LSTM: 1},
    "lists_gru_half": {GRU: 1},
    "lists_gru_two_layers": {GRU: 2},
    "lists_gru_only_the_state": {GRU: 1},
    "lists_in_a_branch": {GRU: 1},
    "lists_resources": {LSTM: 1},
    "projection": {LSTM: 1},
    "residual": {GRU: 1},
    "lists_residual": {GRU: 1},
    # The loop of this does something else, too.
    "own_loop": {"GRUBlockCell": 1},
    # Steps without a loop.
    "static": {LSTM: 1},
    "static_time_major": {LSTM: 1},
    "static_two_layers": {LSTM: 2},
    "static_last": {LSTM: 2},
    "static_both_directions": {LSTM: 2},
    "static_gru": {GRU: 2},
    "static_gru_half": {GRU: 1},
    "static_relu": {LSTM: 1},
    # The first step has no state, and another forget gate is missing.
    "static_layer_norm": {NORMALIZED: 1},
    # Rounding is another one in half.
    "layer_norm_half": {},
    "static_lengths": {CELL: 5},
    "static_feedback": {CELL: 5},
}
ALL = [name + optimized for name in GRAPHS for optimized in ("", "_not_optimized")]
BLOCK_CELLS = [
    f"block_cells_{cell}_{loop}{split}"
    for cell in ("lstm", "gru")
    for loop in ("dynamic", "static", "lists")
    for split in ("", "_beside_a_split")
]
FUNCTIONS = [] if tf.__version__.startswith("1.") else ["in_a_function"]


@pytest.fixture(scope="module")
def stock():
    return isolated.run("layers", ALL + FUNCTIONS + BLOCK_CELLS, {"BLOCKCELL_OVERRIDE": "0"})


@pytest.fixture(scope="module")
def rewritten():
    return isolated.run("layers", ALL + FUNCTIONS + BLOCK_CELLS, {"BLOCKCELL_REWRITE": None})


@pytest.mark.parametrize("name", ALL)
def test_inference(stock, rewritten, name):
    got, want = isolated.value(rewritten[name]), isolated.value(stock[name])
    plain = name.replace("_not_optimized", "")
    assert got["rewritten"] == GRAPHS[plain]
    assert want["rewritten"] == {}
    if {LSTM, GRU} & set(got["rewritten"]) and "ops" in got["outcomes"]["rows"]:
        ops = set(got["outcomes"]["rows"]["ops"])
        assert not {"Split", "LSTMBlockCell", "GRUBlockCell"} & ops
        assert name.startswith("in_another_loop") or "NextIteration" not in ops
    limit = 2e-3 if "half" in name else 2e-6
    for feeds, outcome in want["outcomes"].items():
        # TensorFlow 2.21's LSTMBlockCell refuses a batch without rows; ours takes it everywhere.
        if not (feeds == "no_rows" and "block" in name and "error" in outcome):
            assert_same_outcome(got["outcomes"][feeds], outcome, limit, feeds)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(stock, rewritten, name):
    got, want = isolated.value(rewritten[name]), isolated.value(stock[name])
    assert {op: count for op, count in got["rewritten"].items() if count} == {LSTM: 1}
    for feeds, outcome in want["outcomes"].items():
        assert_same_outcome(got["outcomes"][feeds], outcome, 2e-6, feeds)


@pytest.mark.parametrize("name", BLOCK_CELLS)
def test_cells_of_this_package(stock, rewritten, name):
    """A loop of block cells has nothing else that rewrites begin with."""
    got, want = isolated.value(rewritten[name]), isolated.value(stock[name])
    layer, cell = (LSTM, "LSTMBlockCell") if "lstm" in name else (GRU, "GRUBlockCell")
    assert {op: count for op, count in got["rewritten"].items() if count} == {layer: 1}
    assert want["ops"][cell] and cell not in got["ops"]
    assert_same_outcome(got, want, 2e-6, name)


def test_that_the_feeds_tell_something(stock):
    """Most are well-formed, the last ones are not, and values are no zeros."""
    outcomes = isolated.value(stock["basic_lengths"])["outcomes"]
    assert [feeds for feeds, outcome in outcomes.items() if "error" in outcome] == [
        "no_steps",
        "wide",
        "few_lengths",
    ]
    assert all(np.abs(value).max() > 0.1 for value, _ in outcomes["rows"]["values"])
