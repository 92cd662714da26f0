"""Converts an .h5 model with CuDNNLSTM and CuDNNGRU layers, which Keras 3 does not have.

    python examples/cudnn_h5/convert.py old.h5 new.keras

The new model has LSTM and GRU layers with the same weights. It needs Keras 3 and h5py, no GPU.
"""

import argparse
import json
import shutil
import tempfile
from pathlib import Path

import h5py
import keras
import numpy as np

LAYERS = {
    "CuDNNLSTM": ("LSTM", {"recurrent_activation": "sigmoid"}),
    "CuDNNGRU": ("GRU", {"recurrent_activation": "sigmoid", "reset_after": True}),
}
"""The layers that take the place of cuDNN's, and the options with which they compute the same."""
WEIGHTS = ("kernel:0", "recurrent_kernel:0", "bias:0")


def converted_config(part):
    """A model's configuration with other layers, also within layers such as Bidirectional."""
    if isinstance(part, list):
        return [converted_config(one) for one in part]
    if not isinstance(part, dict):
        return part
    part = {key: converted_config(value) for key, value in part.items()}
    for key, value in part.items():
        if key.endswith("_initializer") and isinstance(value, dict):
            value["config"].pop("dtype", None)  # Of TensorFlow 1, unknown in Keras 3.
    shape = part.get("batch_input_shape")
    if shape is not None and "batch_shape" not in part and "sparse" not in part:
        part["input_shape"] = part.pop("batch_input_shape")[1:]  # But that of an InputLayer.
    if part.get("class_name") in LAYERS:
        name, options = LAYERS[part["class_name"]]
        config = dict(part["config"], **options)
        if config.pop("time_major", False):
            raise SystemExit(f"{config['name']} is time-major, which Keras 3's layers are not")
        part.update(module="keras.layers", class_name=name, registered_name=None, config=config)
    return part


def converted_weights(kernel, recurrent_kernel, bias):
    """Weights of LSTM or GRU from those of CuDNNLSTM or CuDNNGRU; None if they are no such weights.

    cuDNN's matrices are transposed, gate by gate, and each gate has a bias for x and one for h. An
    LSTM adds these up; a GRU, whose reset gate comes between them, keeps both.
    """
    units = recurrent_kernel.shape[0]
    gates = recurrent_kernel.shape[1] // units
    if bias.shape != (2 * gates * units,):
        return None
    kernel = [block.T.reshape(block.shape, order="F") for block in np.hsplit(kernel, gates)]
    recurrent_kernel = [block.T for block in np.hsplit(recurrent_kernel, gates)]
    bias = bias.reshape(2, -1)
    bias = bias if gates == 3 else bias.sum(axis=0)
    return np.hstack(kernel), np.hstack(recurrent_kernel), bias


def convert(file):
    """Converts an open file of h5py's in its place; returns the number of layers."""
    file.attrs["model_config"] = json.dumps(
        converted_config(json.loads(file.attrs["model_config"]))
    )
    groups = []
    file["model_weights"].visititems(
        lambda _, item: groups.append(item) if isinstance(item, h5py.Group) else None
    )
    count = 0
    for group in groups:
        if not all(name in group for name in WEIGHTS):
            continue
        arrays = converted_weights(*(group[name][()] for name in WEIGHTS))
        for name, array in zip(WEIGHTS, arrays or ()):
            del group[name]  # The bias has another shape.
            group[name] = array
        count += arrays is not None
    return count


def main():
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", help="the .h5 file")
    parser.add_argument("new", help="the file to write: .keras or .h5")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.h5"
        shutil.copy(arguments.old, copy)
        with h5py.File(copy, "r+") as file:
            count = convert(file)
        model = keras.models.load_model(copy, compile=False)
    model.save(arguments.new)
    print(f"{arguments.new}: {count} layers of cuDNN's became Keras's")


if __name__ == "__main__":
    main()
