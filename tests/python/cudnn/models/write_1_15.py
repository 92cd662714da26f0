"""Writes the models of this folder that TensorFlow 1.15 makes, on any machine.

    .venv-1.15/bin/python tests/python/cudnn/models/write_1_15.py

* `contrib_lstm.meta.gz`: the MetaGraph of a training script with `tf.contrib.cudnn_rnn.CudnnLSTM`,
  as it was written for GPUs.
* `contrib_lstm.ckpt.*`: a checkpoint in canonical form for its saver. `CudnnCompatibleLSTMCell`,
  the cell that TensorFlow has for CPUs, wrote it.
* `cudnn_gru.h5`: a model of Keras with `tf.keras.layers.CuDNNGRU`.
* `cudnn_lstm.h5`: one with `tf.keras.layers.CuDNNLSTM`, alone and in `Bidirectional`.
* `values_1_15.npz`, `values_cudnn_lstm.npz`: inputs of all, and the outputs that TensorFlow
  computes without cuDNN: of the compatible cells, and of `GRU(reset_after=True)` and `LSTM` layers,
  to which Keras converts the weights.
"""

import gzip
from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorflow.contrib import cudnn_rnn
from tensorflow.contrib import rnn as contrib_rnn

FOLDER = Path(__file__).resolve().parent
LAYERS, UNITS, INPUT_SIZE = 2, 6, 3
TIME, BATCH = 7, 5
SEED = 20191018


def random(*shape, seed=0):
    return np.random.RandomState([seed, *shape]).standard_normal(shape).astype("f")


# The MetaGraph and its checkpoint.


def rest_of_the_network(hidden, targets):
    """A layer on top, and the loss of predicting targets [T, B]."""
    predictions = tf.layers.dense(hidden, 1, name="dense")[..., 0]
    tf.identity(predictions, name="predictions")
    return tf.losses.mean_squared_error(targets, predictions)


def placeholders():
    return (
        tf.placeholder(tf.float32, [None, None, INPUT_SIZE], name="inputs"),
        tf.placeholder(tf.float32, [None, None], name="targets"),
    )


def write_meta_graph():
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(SEED)
        inputs, targets = placeholders()
        lstm = cudnn_rnn.CudnnLSTM(LAYERS, UNITS, direction="bidirectional")
        hidden, _ = lstm(inputs)
        loss = tf.identity(rest_of_the_network(hidden, targets), name="loss")
        tf.train.AdamOptimizer(0.02).minimize(loss, name="train")
        tf.global_variables_initializer()  # Its node is called "init".
        canonical = [v for v in tf.trainable_variables() if "opaque_kernel" not in v.name]
        saver = tf.train.Saver(canonical + tf.get_collection(tf.GraphKeys.SAVEABLE_OBJECTS))
        # The saveable object is in the saver; as a member of a collection it cannot be written.
        graph.clear_collection(tf.GraphKeys.SAVEABLE_OBJECTS)
        meta = tf.train.export_meta_graph(graph=graph, saver_def=saver.as_saver_def())
    data = meta.SerializeToString(deterministic=True)
    with gzip.GzipFile(str(FOLDER / "contrib_lstm.meta.gz"), "wb", mtime=0) as file:
        file.write(data)


def write_checkpoint():
    """Trains the same network of compatible cells a little; returns its inputs and outputs."""
    x, y = random(TIME, BATCH, INPUT_SIZE), random(TIME, BATCH)
    with tf.Graph().as_default():
        tf.set_random_seed(SEED)
        inputs, targets = placeholders()

        def cells():
            return [cudnn_rnn.CudnnCompatibleLSTMCell(UNITS) for _ in range(LAYERS)]

        with tf.variable_scope("cudnn_lstm"):
            hidden, _, _ = contrib_rnn.stack_bidirectional_dynamic_rnn(
                cells(), cells(), inputs, dtype=tf.float32, time_major=True
            )
        loss = rest_of_the_network(hidden, targets)
        train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
        saver = tf.train.Saver(tf.trainable_variables())
        predictions = tf.get_default_graph().get_tensor_by_name("predictions:0")
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for _ in range(20):  # So that biases are not zero.
                session.run(train, {inputs: x, targets: y})
            saver.save(
                session,
                str(FOLDER / "contrib_lstm.ckpt"),
                write_meta_graph=False,
                write_state=False,
            )
            fed = {inputs: x, targets: y}
            got_predictions, got_loss = session.run([predictions, loss], fed)
    return {"inputs": x, "targets": y, "predictions": got_predictions, "loss": got_loss}


# Keras.


def gru_model(layer, **options):
    """Two GRU layers and one on top."""
    return tf.keras.Sequential(
        [
            layer(UNITS, return_sequences=True, input_shape=(None, INPUT_SIZE), **options),
            layer(UNITS - 1, **options),
            tf.keras.layers.Dense(1),
        ]
    )


def lstm_model(layer, **options):
    """An LSTM layer, one in both directions, and one on top."""
    inputs = tf.keras.Input((None, INPUT_SIZE))
    hidden = layer(UNITS, return_sequences=True, **options)(inputs)
    hidden = tf.keras.layers.Bidirectional(layer(UNITS - 1, **options))(hidden)
    return tf.keras.Model(inputs, tf.keras.layers.Dense(1)(hidden))


def without_cudnn(layer, inputs, initial_state):
    """Stands in for the part of a layer that makes cuDNN's op: outputs of the same shapes."""
    state = initial_state[0]
    if not layer.return_sequences:
        return state, list(initial_state)
    shape = [tf.shape(inputs)[0], tf.shape(inputs)[1], layer.units]
    return tf.zeros(shape), list(initial_state)


def write_keras(name, make, cudnn, layer, **options):
    """Writes a model; returns its inputs and outputs.

    Args:
      name: Of the file.
      make: Makes the model of a class of layers.
      cudnn: The class of cuDNN's layers.
      layer: The class that computes the same.
      options: Its options.
    """
    # A session looks for kernels of all ops of its graph, also if it only reads weights.
    cudnn._process_batch = without_cudnn
    path = str(FOLDER / name)
    x, y = random(BATCH, TIME, INPUT_SIZE), random(BATCH, 1)
    with tf.Graph().as_default(), tf.Session().as_default() as session:
        tf.keras.backend.set_session(session)
        tf.set_random_seed(SEED)
        model = make(cudnn)
        model.compile("adam", "mse")
        model.set_weights([random(*w.shape, seed=k) / 2 for k, w in enumerate(model.get_weights())])
        model.save(path, include_optimizer=False)
    with tf.Graph().as_default(), tf.Session().as_default() as session:
        tf.keras.backend.set_session(session)
        model = make(layer, recurrent_activation="sigmoid", **options)
        model.load_weights(path)
        outputs = model.predict(x)
    return {"inputs": x, "targets": y, "outputs": outputs}


def main():
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
    write_meta_graph()
    arrays = {f"contrib_lstm/{name}": value for name, value in write_checkpoint().items()}
    layers = tf.keras.layers
    gru = (gru_model, layers.CuDNNGRU, layers.GRU)
    found = write_keras("cudnn_gru.h5", *gru, reset_after=True)
    arrays.update({f"cudnn_gru/{name}": value for name, value in found.items()})
    np.savez(str(FOLDER / "values_1_15.npz"), **arrays)
    found = write_keras("cudnn_lstm.h5", lstm_model, layers.CuDNNLSTM, layers.LSTM)
    np.savez(str(FOLDER / "values_cudnn_lstm.npz"), **found)


if __name__ == "__main__":
    main()
