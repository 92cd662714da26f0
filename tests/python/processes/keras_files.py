"""Models saved on one side, and loaded on the other.

The folder of the files is in BLOCKCELL_TEST_MODELS.
"""

import json
import os
import sys
from pathlib import Path

import numpy as np
import tensorflow as tf

NUMBERS = np.random.RandomState(2).standard_normal((4, 6, 3)).astype("f")
KERAS2 = not hasattr(tf.keras.layers.LSTM, "inner_loop")
OWN_OPS = ("BlockGRU", "Blockcell")


def folder():
    return Path(os.environ["BLOCKCELL_TEST_MODELS"])


def model(layers=tf.keras.layers):
    keras = tf.keras.layers
    made = tf.keras.Sequential(
        [
            tf.keras.Input((None, 3)),
            keras.Masking(),
            keras.Bidirectional(layers.LSTM(4, return_sequences=True)),
            layers.GRU(4),
            keras.Dense(1),
        ]
    )
    made.compile("adam", tf.keras.losses.MeanSquaredError())
    return made


def fit(trained):
    return trained.fit(NUMBERS, NUMBERS[:, 0, :1], epochs=2, verbose=0).history["loss"]


def formats():
    """Names of files, and how to save and load them."""
    load = tf.keras.models.load_model
    yield "model.h5", lambda m, path: m.save(path), lambda path: load(path, compile=False)
    if KERAS2:
        yield "saved_model", lambda m, path: m.save(path), load
    else:
        yield "model.keras", lambda m, path: m.save(path), load

    def load_weights(path):
        made = model()
        made.load_weights(path)
        return made

    yield "model.weights.h5", lambda m, path: m.save_weights(path), load_weights


def save(side):
    trained = model()
    fit(trained)
    for name, save_model, _ in formats():
        save_model(trained, str(folder() / f"{side}-{name}"))
    expected = trained.predict(NUMBERS, verbose=0)
    np.save(str(folder() / f"{side}.npy"), expected)


def load(side):
    """Loads, predicts and goes on training; returns the losses by format."""
    losses = {}
    for name, _, load_model in formats():
        loaded = load_model(str(folder() / f"{side}-{name}"))
        got = loaded.predict(NUMBERS, verbose=0)
        np.testing.assert_allclose(got, np.load(str(folder() / f"{side}.npy")), atol=1e-5)
        if "h5" not in name:  # Those have no state of the optimizer, or Keras 3 cannot restore it.
            losses[name] = fit(loaded)
    return losses


def save_without():
    save("stock")
    assert "blockcell" not in sys.modules


def load_without():
    losses = load("kernels")
    assert "blockcell" not in sys.modules
    return losses


def load_without_again():
    return load("stock")


def _enable():
    import blockcell

    blockcell.keras.enable()


def save_with():
    _enable()
    save("kernels")


def load_with():
    import keras_models

    with keras_models.on_kernels() as calls:
        losses = load("stock")
    assert len(set(calls)) >= 3
    return losses


def load_with_again():
    _enable()
    return load("kernels")


def export_with():
    """The graph has none of the library's ops, and the model goes on as before."""
    import blockcell
    import keras_models

    exported = model()
    path = str(folder() / "exported")
    with keras_models.on_kernels() as calls:
        fit(exported)
        before = len(calls)
        if KERAS2:
            tf.saved_model.save(exported, path)
        else:
            exported.export(path, verbose=False)
        assert len(calls) == before
        by_name = model(blockcell.keras)
        by_name.set_weights(exported.get_weights())
        before = len(calls)
        tf.saved_model.save(by_name, path + "-by-name")
        assert before and len(calls) == before
        np.save(str(folder() / "exported.npy"), exported.predict(NUMBERS, verbose=0))


def graph_ops(path):
    """The ops of all functions of a SavedModel."""
    from tensorflow.core.protobuf import saved_model_pb2

    file = saved_model_pb2.SavedModel.FromString((Path(path) / "saved_model.pb").read_bytes())
    functions = file.meta_graphs[0].graph_def.library.function
    return {node.op for function in functions for node in function.node_def}


def export_on_kernels():
    """Written for programs with the library, whether it was enabled before or not."""
    import blockcell

    made = model()
    options = {} if KERAS2 else {"verbose": False}
    path = str(folder() / "on-kernels")
    blockcell.keras.export(made, path, **options)
    assert graph_ops(path) >= {"BlockGRU", "BlockLSTMV2"}
    assert not blockcell.keras.hooks.enabled()
    blockcell.keras.enable()
    blockcell.keras.export(made, path + "-enabled", **options)
    assert graph_ops(path + "-enabled") >= {"BlockGRU", "BlockLSTMV2"}
    tf.saved_model.save(made, path + "-not")
    assert not graph_ops(path + "-not") & {"BlockGRU", "BlockLSTMV2"}
    blockcell.keras.disable()
    np.save(str(folder() / "on-kernels.npy"), made.predict(NUMBERS, verbose=0))


def load_on_kernels():
    """No Keras layer has to be there; the ops are found by name."""
    import blockcell

    blockcell.load()
    for name in ("on-kernels", "on-kernels-enabled"):
        loaded = tf.saved_model.load(str(folder() / name))
        serve = loaded.signatures["serving_default"]
        (argument,) = serve.structured_input_signature[1]
        (got,) = serve(**{argument: tf.constant(NUMBERS)}).values()
        np.testing.assert_allclose(got, np.load(str(folder() / "on-kernels.npy")), atol=1e-5)


def load_export_without():
    for name in ("exported", "exported-by-name"):
        loaded = tf.saved_model.load(str(folder() / name))
        serve = loaded.signatures["serving_default"]
        (argument,) = serve.structured_input_signature[1]
        (got,) = serve(**{argument: tf.constant(NUMBERS)}).values()
        np.testing.assert_allclose(got, np.load(str(folder() / "exported.npy")), atol=1e-5)
    assert "blockcell" not in sys.modules


def save_by_name():
    import blockcell

    made = model(blockcell.keras)
    path = str(folder() / ("by_name.h5" if KERAS2 else "by_name.keras"))
    made.save(path)
    np.save(str(folder() / "by_name.npy"), made.predict(NUMBERS, verbose=0))
    return json.loads(made.to_json())["config"]["layers"][-2]["class_name"]


def load_by_name():
    import blockcell

    path = str(folder() / ("by_name.h5" if KERAS2 else "by_name.keras"))
    _ = blockcell.keras.GRU  # Keras loads classes that the program has imported.
    loaded = tf.keras.models.load_model(path)
    assert type(loaded.layers[-2]) is blockcell.keras.GRU
    np.testing.assert_allclose(
        loaded.predict(NUMBERS, verbose=0), np.load(str(folder() / "by_name.npy")), atol=1e-5
    )
