"""The recipe that turns `.h5` files with layers of cuDNN's into files of Keras 3."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from blockcell_tools.reference.inputs import scaled_error

FOLDER = Path(__file__).resolve().parent / "models"
PROGRAM = FOLDER.parents[3] / "examples" / "cudnn_h5" / "convert.py"
IS_KERAS_3 = getattr(tf.keras, "__version__", "0").startswith("3.")


@pytest.mark.skipif(not IS_KERAS_3, reason="the recipe is for Keras 3")
@pytest.mark.parametrize(
    "name, file, prefix, layers",
    [
        ("cudnn_gru", "values_1_15.npz", "cudnn_gru/", ["GRU", "GRU", "Dense"]),
        ("cudnn_lstm", "values_cudnn_lstm.npz", "", ["LSTM", "Bidirectional", "Dense"]),
    ],
)
def test_converted_model_computes_the_same(tmp_path, name, file, prefix, layers):
    new = tmp_path / "new.keras"
    command = [sys.executable, str(PROGRAM), str(FOLDER / (name + ".h5")), str(new)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    count = 2 if name == "cudnn_gru" else 3
    assert f"{count} layers of cuDNN's became Keras's" in done.stdout
    model = tf.keras.models.load_model(str(new))
    kinds = [type(layer).__name__ for layer in model.layers]
    assert [kind for kind in kinds if kind != "InputLayer"] == layers
    with np.load(FOLDER / file) as saved:
        got = model.predict(saved[prefix + "inputs"], verbose=0)
        assert scaled_error(got, saved[prefix + "outputs"]) < 1e-5
