"""Layers and cells of Keras 2 that no cuDNN op replaces: their loops become one op."""

import pytest
import tensorflow as tf

from helpers import isolated
from helpers.checks import assert_same_outcome

if tf.__version__.startswith("1."):
    pytest.skip("that Keras has a product for each gate", allow_module_level=True)

NAMES = (
    *("reset_before", "last_of_reset_before", "backwards", "without_bias", "relu"),
    *("cell", "last_of_cell", "cell_that_resets_before"),
)


@pytest.fixture(scope="module")
def stock():
    return isolated.run("keras2_loops", NAMES, {"BLOCKCELL_REWRITE": "0"})


@pytest.fixture(scope="module")
def ours():
    return isolated.run("keras2_loops", NAMES, {"BLOCKCELL_REWRITE": None})


@pytest.mark.parametrize("how", ["function", "session"])
@pytest.mark.parametrize("name", NAMES)
def test_inference(stock, ours, name, how):
    want, got = (isolated.value(side[name])[how] for side in (stock, ours))
    assert not any(want["rewritten"].values())
    found = {op: number for op, number in got["rewritten"].items() if number}
    assert found == {"BlockcellKerasGRU": 1}
    for feeds, outcome in want["outcomes"].items():
        assert_same_outcome(got["outcomes"][feeds], outcome, 2e-6, feeds)
