"""Each option of Keras's layers: outputs and gradients on the kernels are those of Keras's path."""

import pytest
import tensorflow as tf

from helpers import isolated, keras_cases

if tf.__version__.startswith("1."):
    pytest.skip("Keras 2.4 and later only", allow_module_level=True)
KERAS2 = not hasattr(tf.keras.layers.LSTM, "inner_loop")
FUNCTIONS = ("sequences_and_states", "mask_with_gaps", "mask_last_output")
NAMES = [f"{layer}-{name}" for layer, name in keras_cases.names(KERAS2)]
NAMES += ["states_that_would_grow_behind_the_end"]
NAMES += [f"{layer}-{name}-function" for layer in keras_cases.LAYERS for name in FUNCTIONS]


@pytest.fixture(scope="module")
def outcomes():
    return isolated.run("keras_equality", NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_kernels_equal_kerass_path(outcomes, name):
    isolated.value(outcomes[name])
