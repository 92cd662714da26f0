"""Writes SavedModels of Keras 2 with recurrent layers, and beside each what it computes.

Run it with TensorFlow 2.4 to 2.15; each archive has its release in its name:

    python tests/python/graph_pass/keras2/write.py [NAME ...]
"""

import sys
import tarfile
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorflow.python.platform import build_info

FOLDER = Path(__file__).resolve().parent
RELEASE = ".".join(tf.__version__.split(".")[:2])
BATCH, STEPS, INPUT = 3, 6, 5
layers = tf.keras.layers


def inputs(dtype="float32", batch=None):
    return tf.keras.Input(batch_shape=(batch, None, INPUT), dtype=dtype)


def lstm():
    x = inputs()
    h = layers.LSTM(6, return_sequences=True)(x)
    return tf.keras.Model(x, layers.LSTM(4, go_backwards=True)(h))


def gru():
    x = inputs()
    return tf.keras.Model(x, layers.GRU(6, return_sequences=True)(x))


def both_directions():
    x = inputs()
    return tf.keras.Model(x, layers.Bidirectional(layers.GRU(4))(x))


def states():
    x = inputs(batch=BATCH)
    return tf.keras.Model(x, layers.LSTM(4, return_state=True, stateful=True)(x))


def time_major():
    x = inputs()
    return tf.keras.Model(x, layers.LSTM(4, time_major=True, return_sequences=True)(x))


def half():
    x = inputs("float16")
    # The default, an orthogonal matrix, does not work in half.
    layer = layers.LSTM(4, dtype="float16", recurrent_initializer="glorot_uniform")
    return tf.keras.Model(x, layer(x))


def masked():
    x = inputs()
    return tf.keras.Model(x, layers.LSTM(4)(layers.Masking()(x)))


def masked_outputs():
    x = inputs()
    return tf.keras.Model(x, layers.GRU(4, return_sequences=True)(layers.Masking()(x)))


def other_order():
    """What a build of TensorFlow for CPUs writes."""
    before = build_info.build_info["is_cuda_build"]
    build_info.build_info["is_cuda_build"] = False
    try:
        return gru()
    finally:
        # The functions are traced when the model is saved.
        RESTORE.append(before)


RESTORE = []
MODELS = (lstm, gru, both_directions, states, time_major, half, masked, masked_outputs, other_order)


def example(dtype, seed):
    """Rows, of which some end early where the model has a mask."""
    x = np.random.RandomState(seed).uniform(-1, 1, (BATCH, STEPS, INPUT))
    x[0, 4:] = 0
    x[2, 2:] = 0
    return x.astype(dtype)


def set_weights(model):
    for number, weights in enumerate(model.weights):
        random = np.random.RandomState(number)
        weights.assign(
            random.uniform(-0.5, 0.5, weights.shape).astype(weights.dtype.as_numpy_dtype)
        )


def values(model, x):
    """Outputs, and gradients of their weighted sum by x and all weights."""
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        outputs = tf.nest.flatten(model(x))
        total = tf.add_n([tf.reduce_sum(y * tf.cos(y)) for y in outputs])
    gradients = tape.gradient(total, [x] + model.trainable_variables)
    named = {f"output_{k}": y.numpy() for k, y in enumerate(outputs)}
    named.update({f"gradient_{k}": dx.numpy() for k, dx in enumerate(gradients)})
    return named


def write(make):
    tf.keras.backend.clear_session()
    name = make.__name__
    model = make()
    set_weights(model)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(str(path), save_format="tf")
        while RESTORE:
            build_info.build_info["is_cuda_build"] = RESTORE.pop()
        set_weights(model)  # The states of stateful layers, too.
        x = example(model.inputs[0].dtype.as_numpy_dtype, seed=1)
        np.savez(str(path / "values.npz"), x=x, **values(model, x))
        for extra in ("keras_metadata.pb", "fingerprint.pb"):
            if (path / extra).exists():
                (path / extra).unlink()
        with tarfile.open(str(FOLDER / f"{RELEASE}-{name}.tar.xz"), "w:xz") as archive:
            archive.add(str(path), arcname="model", filter=_without_owner)


def _without_owner(member):
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    for made in MODELS:
        if not sys.argv[1:] or made.__name__ in sys.argv[1:]:
            write(made)
