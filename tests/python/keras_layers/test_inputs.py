"""Layers with inputs, states and masks of all shapes and types do what Keras's own path does."""

import pytest
import tensorflow as tf

from helpers import isolated, keras_inputs
from helpers.sampling import WHOLE

if tf.__version__.startswith("1."):
    pytest.skip("blockcell.keras is for TensorFlow 2", allow_module_level=True)
KERAS2 = not hasattr(tf.keras.layers.LSTM, "inner_loop")
SEEDS = range(400 if WHOLE else 30)
AT_ONCE = 50  # Each traces functions, which takes seconds.


@pytest.fixture(scope="module")
def outcomes():
    names = [f"drawn_{seed}" for seed in SEEDS]
    found = {}
    for first in range(0, len(names), AT_ONCE):
        found.update(isolated.run("keras_inputs", names[first : first + AT_ONCE]))
    return found


def name_of(seed):
    return f"{seed}-{keras_inputs.drawn(seed, KERAS2)}"


@pytest.mark.parametrize("seed", SEEDS, ids=name_of)
def test_same_values_or_no_values(outcomes, seed):
    isolated.value(outcomes[f"drawn_{seed}"])


def test_calls_of_all_kinds_are_drawn(outcomes):
    values = [outcome["value"] for outcome in outcomes.values() if "value" in outcome]
    kinds = {(value["served"], value["refused"]) for value in values}
    assert kinds == {(served, refused) for served in (True, False) for refused in (True, False)}
