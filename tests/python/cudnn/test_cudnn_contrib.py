"""The layers of tf.contrib.cudnn_rnn: train on a CPU, and exchange checkpoints with its cells."""

import numpy as np
import pytest
import tensorflow as tf

from blockcell_tools.reference.inputs import scaled_error

pytestmark = pytest.mark.skipif(
    not tf.__version__.startswith("1."), reason="TensorFlow 2 has no tf.contrib"
)

LAYERS, UNITS, TIME, BATCH, INPUT = 2, 5, 6, 4, 3
LENGTHS = [6, 2, 0, 4]
KINDS = ["CudnnLSTM", "CudnnGRU", "CudnnRNNTanh", "CudnnRNNRelu"]


def values(*shape):
    return np.random.RandomState(sum(shape)).standard_normal(shape).astype("f")


def session():
    return tf.compat.v1.Session(config=tf.compat.v1.ConfigProto(allow_soft_placement=True))


def layer(kind, **options):
    return getattr(tf.contrib.cudnn_rnn, kind)(LAYERS, UNITS, seed=1, **options)


@pytest.fixture(params=KINDS)
def trained(request, tmp_path):
    """A kind, the prefix of a checkpoint that all savers write by default, and the output then."""
    with tf.Graph().as_default(), session() as running:
        tf.compat.v1.set_random_seed(1)
        output, _ = layer(request.param, name="layer")(tf.constant(values(TIME, BATCH, INPUT)))
        loss = tf.reduce_mean((output - values(TIME, BATCH, UNITS)) ** 2)
        train = tf.compat.v1.train.AdamOptimizer(0.02).minimize(loss)
        saver = tf.compat.v1.train.Saver()
        running.run(tf.compat.v1.global_variables_initializer())
        losses = [running.run([loss, train])[0] for _ in range(30)]
        assert losses[-1] < 0.9 * losses[0]
        path = saver.save(running, str(tmp_path / "model"), write_meta_graph=False)
        yield request.param, path, running.run(output)


def test_checkpoint_restores_the_layer(trained):
    kind, path, want = trained
    with tf.Graph().as_default(), session() as running:
        output, _ = layer(kind, name="layer")(tf.constant(values(TIME, BATCH, INPUT)))
        tf.compat.v1.train.Saver().restore(running, path)
        assert scaled_error(running.run(output), want) <= 1e-6


def test_checkpoint_restores_cells(trained):
    """Cells of TensorFlow's own, which are not for cuDNN, compute the same."""
    kind, path, want = trained
    basic = tf.compat.v1.nn.rnn_cell.BasicRNNCell
    cell = {
        "CudnnLSTM": tf.contrib.cudnn_rnn.CudnnCompatibleLSTMCell,
        "CudnnGRU": tf.contrib.cudnn_rnn.CudnnCompatibleGRUCell,
        "CudnnRNNTanh": basic,
        "CudnnRNNRelu": lambda units: basic(units, activation=tf.nn.relu),
    }[kind]
    with tf.Graph().as_default(), session() as running:
        stack = tf.compat.v1.nn.rnn_cell.MultiRNNCell([cell(UNITS) for _ in range(LAYERS)])
        with tf.compat.v1.variable_scope("layer"):
            output, _ = tf.compat.v1.nn.dynamic_rnn(
                stack, tf.constant(values(TIME, BATCH, INPUT)), dtype=tf.float32, time_major=True
            )
        tf.compat.v1.train.Saver().restore(running, path)
        assert scaled_error(running.run(output), want) <= 1e-5


@pytest.mark.parametrize("kind", KINDS)
def test_lengths_and_batch_major(kind):
    """Each row is as if it were alone and had no padding."""
    x = values(BATCH, TIME, INPUT)
    with tf.Graph().as_default(), session() as running:
        made = layer(kind, direction="bidirectional")
        output, _ = made(
            tf.constant(x),
            initial_state=tuple(
                tf.zeros([BATCH, 2 * LAYERS, UNITS]) for _ in range(2 if kind == "CudnnLSTM" else 1)
            ),
            sequence_lengths=tf.constant(LENGTHS),
            time_major=False,
        )
        alone = [
            made(tf.constant(x[row : row + 1, :length].swapaxes(0, 1)))[0]
            for row, length in enumerate(LENGTHS)
        ]
        running.run(tf.compat.v1.global_variables_initializer())
        got, want = running.run([output, alone])
    for row, length in enumerate(LENGTHS):
        np.testing.assert_allclose(got[row, :length], want[row][:, 0], atol=1e-6)
        assert not got[row, length:].any()
