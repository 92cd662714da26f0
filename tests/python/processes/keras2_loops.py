"""SavedModels of Keras 2 whose layers are loops of small ops, for `test_keras2_loops`."""

import functools
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

import blockcell
from helpers.failures import uncancelled
from rewrite import config, counted

try:
    import tf_keras as keras
except ImportError:
    keras = tf.keras

INPUT, UNITS = 5, 4
layers = keras.layers
v1 = tf.compat.v1


def prepare():
    blockcell.load()


def _cell(return_sequences=True, **options):
    return layers.RNN(layers.GRUCell(UNITS, **options), return_sequences=return_sequences)


LAYERS = {
    "reset_before": lambda: layers.GRU(UNITS, reset_after=False, return_sequences=True),
    "last_of_reset_before": lambda: layers.GRU(UNITS, reset_after=False),
    "backwards": lambda: layers.GRU(UNITS, reset_after=False, go_backwards=True),
    "without_bias": lambda: layers.GRU(UNITS, reset_after=False, use_bias=False),
    "relu": lambda: layers.GRU(UNITS, activation="relu"),
    "cell": _cell,
    "last_of_cell": lambda: _cell(return_sequences=False),
    "cell_that_resets_before": lambda: _cell(reset_after=False),
}
SHAPES = {"rows": (3, 6), "one": (1, 1), "many": (3, 40), "no rows": (0, 6), "no steps": (3, 0)}


def _outcomes(serve):
    results = {}
    for name, shape in SHAPES.items():
        x = np.random.RandomState(len(name)).uniform(-1, 1, [*shape, INPUT]).astype(np.float32)
        try:
            y = uncancelled(functools.partial(serve, x))
            results[name] = {"values": [[y.astype(np.float64).tolist(), list(y.shape)]]}
        except (tf.errors.OpError, TypeError, ValueError) as error:
            results[name] = {"error": type(error).__name__}
    return {"outcomes": results}


def _of_function(path):
    loaded = tf.saved_model.load(path)  # It holds the variables.

    def serve(x):
        (y,) = loaded.signatures["serving_default"](tf.constant(x)).values()
        return y.numpy()

    return _outcomes(serve)


def _of_session(path):
    with tf.Graph().as_default(), v1.Session(config=config(True)) as running:
        model = v1.saved_model.load(running, ["serve"], path)
        signature = model.signature_def["serving_default"]
        (x_info,), (y_info,) = signature.inputs.values(), signature.outputs.values()
        return _outcomes(lambda x: running.run(y_info.name, {x_info.name: x}))


def _saved(make):
    x = keras.Input(batch_shape=(None, None, INPUT))
    model = keras.Model(x, make()(x))
    for number, weights in enumerate(model.weights):
        random = np.random.RandomState(number)
        weights.assign(random.uniform(-0.7, 0.7, weights.shape))
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model")
        tf.saved_model.save(model, path)
        function = counted(lambda: _of_function(path))
        return {"function": function, "session": counted(lambda: _of_session(path))}


for _name, _make in LAYERS.items():
    globals()[_name] = lambda make=_make: _saved(make)
