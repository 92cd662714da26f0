"""Models of Keras 3, whose layers run as one op in functions and in sessions.

Each runs with TensorFlow's graphs and with ours, on well-formed, extreme and malformed inputs.
"""

import numpy as np
import pytest
import tensorflow as tf

from helpers import isolated
from helpers.checks import assert_same_outcome

if not getattr(tf.keras, "__version__", "2").startswith("3."):
    pytest.skip("this TensorFlow has Keras 2", allow_module_level=True)

LSTM, GRU = "BlockcellKerasLSTM", "BlockcellKerasGRU"
STEP, LAYER = "BlockcellLSTMCell", "BlockcellLSTMLayer"
# The nodes that the graphs of the models get.
MODELS = {
    "lstm": {LSTM: 2},
    "gru": {GRU: 1},
    "last_of_gru": {GRU: 1},
    "fixed_steps": {LSTM: 1},
    "fixed_sizes": {GRU: 1},
    "one_row": {LSTM: 1},
    "one_masked_row": {LSTM: 1, STEP: 1},
    "only_states": {LSTM: 1},
    "both_directions": {LSTM: 2},
    "states": {LSTM: 1},
    "first_states": {LSTM: 1},
    "stateful": {GRU: 1},
    "half": {LSTM: 1},
    "half_gru": {GRU: 1},
    # The step that makes the output before the first one.
    "masked": {LSTM: 1, STEP: 1},
    "masked_outputs": {GRU: 1},
    "masked_backwards": {LSTM: 2, STEP: 2},
    "masked_zeros": {LSTM: 1, STEP: 1},
    "cell_of_lstm": {LSTM: 1},
    "relu": {LSTM: 1},
    "relu_and_hard_sigmoid": {LSTM: 1},
    "linear": {LSTM: 1},
    "tanh_of_gates": {LSTM: 1},
    "gru_relu": {GRU: 1},
    "gru_linear": {GRU: 1},
    # The optimizers add the number in hard_sigmoid to one of the two parts of a gate.
    "gru_hard_sigmoid": {GRU: 1},
    # The steps of this have other equations.
    "elu": {},
    "reset_before": {GRU: 1},
    "masked_reset_before": {GRU: 1},
    "half_reset_before": {GRU: 1},
    "without_bias": {LSTM: 1},
    "masked_without_bias": {LSTM: 1, STEP: 1},
    "gru_without_bias": {GRU: 1},
    "reset_before_without_bias": {GRU: 1},
    # Only the last outputs are written.
    "stacked_cells": {STEP: 2},
    "sequence_without_bias": {LSTM: 1},
    "sequence_of_stacked_cells": {LAYER: 2},
}
TRAINED = ["lstm", "gru", "masked"]
NAMES = [
    "assigned",
    "without_values",
    *("exported_" + name for name in MODELS),
    *("trained_" + name for name in TRAINED),
]


@pytest.fixture(scope="module")
def stock():
    return isolated.run("keras3", NAMES, {"BLOCKCELL_REWRITE": "0"})


@pytest.fixture(scope="module")
def ours():
    return isolated.run("keras3", NAMES, {"BLOCKCELL_REWRITE": None})


def layers_in(rewritten):
    return {op: number for op, number in rewritten.items() if number}


@pytest.mark.parametrize("how", ["function", "session"])
@pytest.mark.parametrize("name", MODELS)
def test_inference(stock, ours, name, how):
    want = isolated.value(stock["exported_" + name])[how]
    got = isolated.value(ours["exported_" + name])[how]
    assert layers_in(want["rewritten"]) == {}
    assert layers_in(got["rewritten"]) == MODELS[name]
    assert list(got["outcomes"]) == list(want["outcomes"])
    limit = 4e-3 if "half" in name else 2e-6
    for feeds, outcome in want["outcomes"].items():
        assert_same_outcome(got["outcomes"][feeds], outcome, limit, feeds)


@pytest.mark.parametrize("name", TRAINED)
def test_that_gradients_stay_right(stock, ours, name):
    want, got = (isolated.value(side["trained_" + name]) for side in (stock, ours))
    assert_same_outcome(got, want, 2e-6, name)


def test_weights_that_change(stock, ours):
    want, got = isolated.value(stock["assigned"]), isolated.value(ours["assigned"])
    assert layers_in(got["rewritten"]) == {GRU: 3}
    assert_same_outcome(got, want, 2e-6, "assigned")
    first, second, third = (np.asarray(value) for value, _ in got["values"])
    assert np.abs(first - second).max() > 0.01 and np.abs(second - third).max() > 0.01


def test_variables_without_a_value(stock, ours):
    """They are an error in a loop with a round, and in no other one."""
    want, got = (isolated.value(side["without_values"]) for side in (stock, ours))
    assert layers_in(got["rewritten"]) == {LSTM: 1}
    outcomes = want["outcomes"]
    assert "error" in outcomes["rows"] and "error" not in outcomes["no steps"]
    for feeds, outcome in outcomes.items():
        assert_same_outcome(got["outcomes"][feeds], outcome, 0, feeds)


def test_that_the_feeds_tell_something(stock):
    outcomes = isolated.value(stock["exported_lstm"])["function"]["outcomes"]
    assert [feeds for feeds, outcome in outcomes.items() if "error" in outcome]
    assert all(np.abs(value).max() > 0.1 for value, _ in outcomes["rows"]["values"])
    masked = isolated.value(stock["exported_masked_outputs"])["function"]["outcomes"]
    assert masked["rows"]["values"] != masked["padded"]["values"] != masked["holes"]["values"]
