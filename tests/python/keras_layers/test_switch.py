"""Enabling, disabling, reports, layers that are not served, and layers by name."""

import subprocess
import sys

import pytest
import tensorflow as tf

import blockcell
from helpers import isolated

TF1 = tf.__version__.startswith("1.")
NAMES = [
    "models_that_have_run",
    "enabled_while_fitting",
    "model_with_its_own_make_train_function",
    "disable_puts_back",
    "nobody_elses_method_is_removed",
    "refused_layers",
    "layers_refused_in_training",
    "float64_inputs",
    "gpu",
    "no_rows",
    "no_steps",
    "report_of_a_model",
    "layers_by_name",
]
if not TF1 and hasattr(tf.keras.utils, "set_random_seed"):  # Not Keras 2.4, which cannot compile.
    NAMES += ["function_compiled_by_xla", "report_of_a_model_compiled_by_xla"]
if not TF1 and hasattr(tf.keras.layers.LSTM, "inner_loop"):  # Earlier Kerases have one backend.
    NAMES += ["other_backends"]


@pytest.fixture(scope="module")
def outcomes():
    return isolated.run("keras_switch", NAMES)


@pytest.mark.skipif(TF1, reason="blockcell.keras is for TensorFlow 2")
@pytest.mark.parametrize("name", NAMES)
def test_process(outcomes, name):
    isolated.value(outcomes[name])


@pytest.mark.skipif(not TF1, reason="TensorFlow 1.15 only")
def test_tensorflow_1_is_refused():
    with pytest.raises(RuntimeError, match="needs TensorFlow 2.4 or later, and 1.15"):
        blockcell.keras.enable()
    with pytest.raises(RuntimeError, match="needs TensorFlow 2.4 or later, and 1.15"):
        _ = blockcell.keras.LSTM


def run(code, **variables):
    environment = {"PYTHONPATH": str(isolated.PATHS[0]), "PATH": "", **variables}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120
    )
    return done.stdout.splitlines(), done.stderr.splitlines()


def test_keras_is_imported_when_it_is_used():
    code = """
import sys, blockcell
print([name for name in ("keras", "tensorflow", "blockcell.keras") if name in sys.modules])
blockcell.keras.enable
print([name for name in ("keras", "tensorflow") if name in sys.modules])
"""
    printed, complaints = run(code)
    assert printed == ["[]", "[]"], complaints
