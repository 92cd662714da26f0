"""Makes models for the load test, with the answers that TensorFlow gives without blockcell.

    python examples/server/make_models.py FOLDER

The folder gets a SavedModel for each, and `examples.npz` with inputs and outputs by their names.
"""

import sys
from pathlib import Path

import keras
import numpy as np

EXAMPLES = 4
"""Inputs of each model; each client of the load test has one of its own."""


def models():
    """The models by name: a sequence of 16 numbers at each of 35 steps in, one number out."""
    layers = keras.layers
    keras.utils.set_random_seed(1)
    makers = {
        "lstm": [layers.LSTM(64), layers.Dense(1, activation="sigmoid")],
        "gru": [layers.Bidirectional(layers.GRU(48)), layers.Dense(1)],
    }
    for name, parts in makers.items():
        yield name, keras.Sequential([keras.Input([35, 16]), *parts])


def main():
    """Writes models and examples."""
    folder = Path(sys.argv[1])
    random = np.random.RandomState(1)
    examples = {}
    for name, model in models():
        inputs = random.standard_normal([EXAMPLES, 2, 35, 16]).astype(np.float32)
        outputs = [model.predict_on_batch(batch) for batch in inputs]
        examples.update({f"{name} inputs": inputs, f"{name} outputs": np.stack(outputs)})
        model.export(str(folder / name), verbose=False)
    np.savez(folder / "examples.npz", **examples)


if __name__ == "__main__":
    main()
