"""Layers with inputs, states and masks of all shapes and types do what Keras's own path does."""

import numpy as np
import pytest
import tensorflow as tf

from helpers import isolated, keras_inputs
from helpers.sampling import WHOLE

if tf.__version__.startswith("1."):
    pytest.skip("blockcell.keras is for TensorFlow 2", allow_module_level=True)
KERAS2 = not hasattr(tf.keras.layers.LSTM, "inner_loop")
SEEDS = range(400 if WHOLE else 30)
AT_ONCE = 50  # Each traces functions, which takes seconds.


GRAPHS = [seed for seed in SEEDS if keras_inputs.drawn(seed, KERAS2).in_function][
    : None if WHOLE else 15
]


def outcomes_of(kind, seeds, environment=None):
    found = {}
    for first in range(0, len(seeds), AT_ONCE):
        names = [f"{kind}_{seed}" for seed in seeds[first : first + AT_ONCE]]
        found.update(isolated.run("keras_inputs", names, environment))
    return found


@pytest.fixture(scope="module")
def outcomes():
    return outcomes_of("drawn", SEEDS)


@pytest.fixture(scope="module")
def stock():
    return outcomes_of("graph", GRAPHS, {"BLOCKCELL_OVERRIDE": "0", "BLOCKCELL_REWRITE": "0"})


@pytest.fixture(scope="module")
def ours():
    return outcomes_of("graph", GRAPHS)


def name_of(seed):
    return f"{seed}-{keras_inputs.drawn(seed, KERAS2)}"


@pytest.mark.parametrize("seed", SEEDS, ids=name_of)
def test_same_values_or_no_values(outcomes, seed):
    isolated.value(outcomes[f"drawn_{seed}"])


def test_calls_of_all_kinds_are_drawn(outcomes):
    values = [outcome["value"] for outcome in outcomes.values() if "value" in outcome]
    kinds = {(value["served"], value["refused"]) for value in values}
    assert kinds == {(served, refused) for served in (True, False) for refused in (True, False)}


@pytest.mark.parametrize("seed", GRAPHS, ids=name_of)
def test_graphs_give_the_same(stock, ours, seed):
    """Without `enable`: the passes leave values and errors as they are."""
    wanted, found = (isolated.value(outcomes[f"graph_{seed}"]) for outcomes in (stock, ours))
    for want, got in zip(wanted, found):
        assert (want is None) == (got is None)
        for one, other in zip(want or [], got or []):
            np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-5)
