"""LSTM and GRU layers of Keras 2, after loading the library and nothing else.

They need the Keras of TensorFlow 2.0 to 2.15, or `tf_keras`: `make test-keras-2` has both.
"""

import os

import numpy as np
import pytest
import tensorflow as tf

from helpers import isolated
from helpers.sampling import WHOLE

LAST = os.environ.get("TF_USE_LEGACY_KERAS") == "1"
TF1 = tf.__version__.startswith("1.")
pytestmark = pytest.mark.skipif(
    TF1 or hasattr(tf.keras.layers.LSTM, "inner_loop"), reason="needs Keras 2"
)
# For each model, how many layers run cuDNN's operations in training; None: only in inference.
MODELS = {
    "lstm": 1,
    "gru": 1,
    "stacked": 2,
    "both directions": 2,
    "backwards": 1,
    "stateful": 1,
    "dropout": 1,
    "initial state": 2,
    "masked": None,
    "another activation": 0,
}
if not WHOLE:  # Each is traced and saved, which takes seconds.
    MODELS = {name: MODELS[name] for name in ("stacked", "both directions", "masked")}
CASES = ["trained_" + name for name in MODELS] + ["eager_lstm"]


@pytest.fixture(scope="module")
def stock():
    return isolated.run("keras2_layers", CASES, {"BLOCKCELL_OVERRIDE": "0"})


@pytest.fixture(scope="module")
def ours():
    return isolated.run("keras2_layers", CASES)


def values(results, case):
    return isolated.value(results[case])["values"]


# TensorFlow draws other numbers for a dropout in each process.
@pytest.mark.parametrize("case", [case for case in CASES if case != "trained_dropout"])
def test_same_values(stock, ours, case):
    want, got = values(stock, case), values(ours, case)
    assert set(want) == set(got)
    for name in want:
        assert len(want[name]) == len(got[name])
        for one, other in zip(want[name], got[name]):
            np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("name", MODELS)
def test_what_is_chosen(ours, name):
    rewritten = isolated.value(ours["trained_" + name])["rewritten"]
    gradients = rewritten["CudnnRNNBackprop"] + rewritten["CudnnRNNBackpropV3"]
    layers = MODELS[name] or 0
    # Of the model, and of what was loaded of it. Of `tf_keras` some of these keep their loop.
    assert gradients == 2 * layers or (LAST and layers <= gradients < 2 * layers)
    runs = rewritten["CudnnRNN"] + rewritten["CudnnRNNV3"]
    assert (runs > 0) == (MODELS[name] != 0)


def test_eager_layers_stay(ours):
    rewritten = isolated.value(ours["eager_lstm"])["rewritten"]
    assert rewritten["CudnnRNNBackprop"] == rewritten["CudnnRNNBackpropV3"] == 0
