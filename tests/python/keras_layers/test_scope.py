"""What `enable` holds for, what it says and counts, and layers in places of all kinds."""

import importlib.util

import pytest
import tensorflow as tf

from helpers import isolated

if tf.__version__.startswith("1."):
    pytest.skip("blockcell.keras is for TensorFlow 2", allow_module_level=True)
VERSION = tuple(map(int, tf.__version__.split(".")[:2]))
KERAS3 = hasattr(tf.keras.layers.LSTM, "inner_loop")
NAMES = [
    "context_manager",
    "one_model",
    "weights_in_int8",
    "precision",
    "strict",
    "every_layer_says_so_once",
    "new_argument",
    "runs_are_counted",
    "functions_of_programs",
    "how_layers_compute",
    "time_distributed",
    "clones",
    "ragged",
]
if hasattr(tf.keras, "__version__"):  # Not that of tf_keras.
    NAMES += ["newer_keras"]
if KERAS3:
    NAMES += ["bfloat16", "tflite"]
OPTIONAL = {"onnx": "tf2onnx", "tf_keras_beside": "tf_keras"} if KERAS3 else {}
NAMES += [name for name, module in OPTIONAL.items() if importlib.util.find_spec(module)]


@pytest.fixture(scope="module")
def outcomes():
    return isolated.run("keras_scope", NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_process(outcomes, name):
    isolated.value(outcomes[name])


def test_report_where_the_library_takes_over_nothing():
    found = isolated.run("keras_scope", ["without_taking_over"], {"BLOCKCELL_OVERRIDE": "0"})
    isolated.value(found["without_taking_over"])
