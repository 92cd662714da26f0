"""The models of Keras's tutorials: text generation with a GRU, and time series with an LSTM.

Each is trained and used in three processes: on TensorFlow's kernels and graphs, after
`blockcell.load()`, and after `blockcell.keras.enable()`.
"""

import numpy as np
import pytest
import tensorflow as tf

from blockcell_tools.reference.inputs import scaled_error
from helpers import isolated

pytestmark = pytest.mark.skipif(
    tf.__version__.startswith("1."), reason="the tutorials are for TensorFlow 2"
)
NAMES = [
    "text_training",
    "text_generation",
    "series_of_an_hour",
    "series_of_a_day",
    "series_fed_back",
]
# Where the layers themselves run on the kernels.
ENABLED = {"text_training", "text_generation", "series_of_an_hour", "series_of_a_day"}


@pytest.fixture(scope="module")
def stock():
    return isolated.run("tutorials", NAMES, {"BLOCKCELL_OVERRIDE": "0"})


@pytest.fixture(scope="module")
def loaded():
    return isolated.run("tutorials", NAMES)


@pytest.fixture(scope="module")
def enabled():
    return isolated.run("tutorials", NAMES, {"BLOCKCELL_ENABLE": "1"})


def check(got, want):
    assert len(got["values"]) == len(want["values"])
    for k, (value, of_stock) in enumerate(zip(got["values"], want["values"])):
        assert np.any(of_stock)
        assert scaled_error(np.asarray(value), np.asarray(of_stock)) <= 2e-5, f"value {k}"


@pytest.mark.parametrize("name", NAMES)
def test_that_loading_changes_no_values(stock, loaded, name):
    check(isolated.value(loaded[name]), isolated.value(stock[name]))


@pytest.mark.parametrize("name", NAMES)
def test_that_enabling_changes_no_values(stock, enabled, name):
    got = isolated.value(enabled[name])
    check(got, isolated.value(stock[name]))
    if name in ENABLED:
        assert sum(got["runs"].values()) > 0
