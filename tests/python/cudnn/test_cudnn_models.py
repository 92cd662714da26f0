"""Models that were made for GPUs restore, infer and train on a CPU.

`models/write_1_15.py` and `models/write_keras_3.py` made them and say what they are. The values
that they have to give are TensorFlow's own, computed without cuDNN.
"""

import contextlib
import gzip
import tarfile
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf.meta_graph_pb2 import MetaGraphDef

from blockcell_tools.reference.inputs import scaled_error

FOLDER = Path(__file__).resolve().parent / "models"
VERSION = tuple(map(int, tf.__version__.split(".")[:2]))
TF1 = VERSION[0] == 1
LIMIT = 1e-5


def values(file, prefix=""):
    arrays = np.load(str(FOLDER / file))
    return {n[len(prefix) :]: arrays[n] for n in arrays.files if n.startswith(prefix)}


# The MetaGraph of tf.contrib.cudnn_rnn.

VALUES = values("values_1_15.npz", "contrib_lstm/")
FED = {"inputs:0": VALUES["inputs"], "targets:0": VALUES["targets"]}
CHECKPOINT = str(FOLDER / "contrib_lstm.ckpt")


@contextlib.contextmanager
def imported(clear_devices=False):
    """The MetaGraph in a session, and its saver. Its nodes ask for a GPU."""
    meta = MetaGraphDef()
    with gzip.open(str(FOLDER / "contrib_lstm.meta.gz")) as file:
        meta.ParseFromString(file.read())
    v1 = tf.compat.v1
    config = v1.ConfigProto(allow_soft_placement=not clear_devices)
    with tf.Graph().as_default(), v1.Session(config=config) as session:
        saver = v1.train.import_meta_graph(meta, clear_devices=clear_devices)
        session.run("init")
        yield session, saver


@pytest.mark.parametrize("clear_devices", [False, True])
def test_contrib_restores_and_infers(clear_devices):
    with imported(clear_devices) as (session, saver):
        saver.restore(session, CHECKPOINT)
        predictions, loss = session.run(["predictions:0", "loss:0"], FED)
    assert scaled_error(predictions, VALUES["predictions"]) <= LIMIT
    assert loss == pytest.approx(VALUES["loss"], rel=LIMIT)


def test_contrib_trains_and_saves(tmp_path):
    with imported() as (session, saver):
        saver.restore(session, CHECKPOINT)
        losses = [session.run(["loss:0", "train"], FED)[0] for _ in range(40)]
        path = saver.save(session, str(tmp_path / "trained"), write_meta_graph=False)
        after = session.run("predictions:0", FED)
    assert losses[0] == pytest.approx(VALUES["loss"], rel=LIMIT)
    assert losses[-1] < 0.5 * losses[0]
    # In canonical form, under the names of the cells for CPUs.
    assert tf.train.list_variables(path) == tf.train.list_variables(CHECKPOINT)
    with imported() as (session, saver):
        saver.restore(session, path)
        # The two biases of a gate are saved as their sum, and restored as halves of it.
        assert scaled_error(session.run("predictions:0", FED), after) <= LIMIT
    if TF1:
        assert scaled_error(predictions_of_compatible_cells(path), after) <= LIMIT


def predictions_of_compatible_cells(path):
    """What the cells that TensorFlow 1.15 has for CPUs make of a checkpoint."""
    from tensorflow.contrib import cudnn_rnn
    from tensorflow.contrib import rnn as contrib_rnn

    units = tf.train.load_variable(path, "dense/kernel").shape[0] // 2
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        cells = [[cudnn_rnn.CudnnCompatibleLSTMCell(units) for _ in range(2)] for _ in range(2)]
        with tf.compat.v1.variable_scope("cudnn_lstm"):
            hidden, _, _ = contrib_rnn.stack_bidirectional_dynamic_rnn(
                *cells, tf.constant(VALUES["inputs"]), dtype=tf.float32, time_major=True
            )
        predictions = tf.compat.v1.layers.dense(hidden, 1, name="dense")[..., 0]
        tf.compat.v1.train.Saver().restore(session, path)
        return session.run(predictions)


# Keras.


@contextlib.contextmanager
def keras_model():
    """The Keras model of the H5 file, compiled, and its values."""
    layer = tf.compat.v1.keras.layers.CuDNNGRU
    with contextlib.ExitStack() as stack:
        if TF1:
            stack.enter_context(tf.Graph().as_default())
        model = tf.keras.models.load_model(
            str(FOLDER / "cudnn_gru.h5"), custom_objects={"CuDNNGRU": layer}, compile=False
        )
        model.compile(tf.keras.optimizers.Adam(0.05), "mse")
        yield model, values("values_1_15.npz", "cudnn_gru/")


needs_cudnn_gru = pytest.mark.skipif(VERSION > (2, 15), reason="Keras 3 has no CuDNNGRU")


@needs_cudnn_gru
def test_keras_model_infers():
    with keras_model() as (model, saved):
        assert scaled_error(model.predict(saved["inputs"]), saved["outputs"]) <= LIMIT


@needs_cudnn_gru
def test_keras_model_trains():
    with keras_model() as (model, saved):
        history = model.fit(saved["inputs"], saved["targets"], epochs=20, verbose=0)
    losses = history.history["loss"]
    first = np.mean((saved["outputs"] - saved["targets"]) ** 2)
    assert losses[0] == pytest.approx(first, rel=1e-4)
    assert losses[-1] < 0.5 * losses[0]


# Keras 3.


@pytest.fixture
def exported(tmp_path):
    """The SavedModel of Keras 3, loaded, and its values."""
    with tarfile.open(str(FOLDER / "keras_3.tar.gz")) as archive:
        archive.extractall(str(tmp_path))
    return tf.saved_model.load(str(tmp_path)), values("values_keras_3.npz")


needs_2_16 = pytest.mark.skipif(VERSION < (2, 16), reason="the model was exported by 2.16")


@needs_2_16
def test_saved_model_of_keras_3_infers(exported):
    model, saved = exported
    assert scaled_error(model.serve(saved["inputs"]), saved["outputs"]) <= LIMIT


@needs_2_16
def test_saved_model_of_keras_3_has_gradients(exported):
    model, saved = exported
    direction = np.random.RandomState(0).standard_normal(saved["inputs"].shape).astype("f")
    direction[saved["inputs"] == 0] = 0  # Masked.
    x = tf.constant(saved["inputs"])
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = tf.reduce_sum(model.serve(x))
    slope = np.sum(tape.gradient(loss, x) * direction)
    above, below = (np.sum(model.serve(x + s * direction)) for s in (0.01, -0.01))
    assert (above - below) / 0.02 == pytest.approx(slope, rel=1e-2)
