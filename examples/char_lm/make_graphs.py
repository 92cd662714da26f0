"""Writes the demo's training graphs with TensorFlow 1.15, as a user's script of that time would.

Run it with TensorFlow 1.15.5 (Python 3.7)::

    python examples/char_lm/make_graphs.py

It writes a file to ``graphs/`` for each of `models.MADE_BY_1_15`. The same TensorFlow writes the
same bytes at every run, but for the order of entries in maps of ``cudnn_lstm.meta``.
"""

import argparse
import pathlib
import sys

import tensorflow as tf

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import models  # noqa: E402
from common import meta_graphs  # noqa: E402


def language_model(model):
    """Builds the training graph of a character language model in the default graph.

    Args:
      model: Which cell to use, one of `models.MADE_BY_1_15`.
    """
    inputs = tf.placeholder(tf.int32, [models.BATCH, models.TIME], name="inputs")
    targets = tf.placeholder(tf.int32, [models.BATCH, models.TIME], name="targets")
    embedding = tf.get_variable(
        "embedding",
        [models.SYMBOLS, models.INPUT_SIZE],
        initializer=initializer(model, "embedding"),
    )
    # Every window starts from a zero state: carrying it along makes an LSTM's training chaotic
    # (README), which would hide what the demo is to show.
    hidden = recurrent_layer(model, tf.nn.embedding_lookup(embedding, inputs))
    logits = tf.layers.dense(
        hidden, models.SYMBOLS, kernel_initializer=initializer(model, "logits"), name="logits"
    )
    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits), name="loss"
    )

    variables = tf.trainable_variables()
    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), models.CLIP_NORM)
    optimizer = tf.train.AdamOptimizer(models.LEARNING_RATE, epsilon=models.ADAM_EPSILON)
    train_op = optimizer.apply_gradients(zip(gradients, variables), name="train")

    for key, value in {
        models.INPUTS: inputs,
        models.TARGETS: targets,
        models.LOSS: loss,
        models.TRAIN_OP: train_op,
        models.INIT_OP: tf.global_variables_initializer(),
    }.items():
        tf.add_to_collection(key, value)


def initializer(model, name):
    """Initial values of a matrix; of the cuDNN model those that `programs` knows, too."""
    return tf.glorot_uniform_initializer(models.SEEDS[name]) if model is models.CUDNN else None


def recurrent_layer(model, x):
    """Returns the cell's states [BATCH, TIME, UNITS] for x [BATCH, TIME, INPUT_SIZE]."""
    if model is models.GRU:
        cell = tf.contrib.rnn.GRUBlockCellV2(models.UNITS)
        return tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)[0]
    if model is models.PLAIN:
        cell = tf.nn.rnn_cell.BasicLSTMCell(models.UNITS, forget_bias=models.FORGET_BIAS)
        return tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)[0]
    if model is models.CUDNN:
        layer = tf.contrib.cudnn_rnn.CudnnLSTM(
            1, models.UNITS, kernel_initializer=initializer(model, "recurrent")
        )
        hidden, _ = layer(tf.transpose(x, [1, 0, 2]))
        # For savers; as a member of a collection it cannot be written.
        tf.get_default_graph().clear_collection(tf.GraphKeys.SAVEABLE_OBJECTS)
        return tf.transpose(hidden, [1, 0, 2])
    lstm = {"forget_bias": models.FORGET_BIAS, "use_peephole": True}
    if model is models.LSTM:
        cell = tf.contrib.rnn.LSTMBlockCell(models.UNITS, **lstm)
        return tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)[0]
    fused = tf.contrib.rnn.LSTMBlockFusedCell(models.UNITS, **lstm)
    hidden, _ = fused(tf.transpose(x, [1, 0, 2]), dtype=tf.float32)
    return tf.transpose(hidden, [1, 0, 2])


def meta_graph(model):
    """Returns the model's MetaGraph as bytes."""
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(models.GRAPH_SEED)
        language_model(model)
        return meta_graphs.serialized(tf, graph)


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description="Write the demo's training graphs (TF 1.15).")
    parser.add_argument(
        "--output", type=pathlib.Path, default=models.GRAPHS, help="folder (default: graphs/)"
    )
    arguments = parser.parse_args()
    if not tf.__version__.startswith("1.15."):
        parser.error(f"TensorFlow 1.15 is needed, this is {tf.__version__}")
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)

    arguments.output.mkdir(parents=True, exist_ok=True)
    for model in models.MADE_BY_1_15:
        path = arguments.output / model.meta.name
        data = meta_graph(model)
        path.write_bytes(data)
        print(f"{path} ({len(data):,} bytes)")


if __name__ == "__main__":
    main()
