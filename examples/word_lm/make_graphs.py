"""Writes training graphs of the word model with TensorFlow 1.15, as scripts of that time did.

Run it with TensorFlow 1.15.5 (Python 3.7)::

    python examples/word_lm/make_graphs.py                  # the committed graphs
    python examples/word_lm/make_graphs.py --sizes large    # those that are too slow for every day

It writes a file to ``graphs/`` for each size and kind of cell. The same TensorFlow writes the same
bytes at every run.
"""

import argparse
import gzip
import io
import pathlib
import sys

import tensorflow as tf

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import models  # noqa: E402
from common import meta_graphs  # noqa: E402


def language_model(cell, size):
    """Builds the training graph in the default graph.

    Args:
      cell: Which cell to use, a key of `models.CELLS`.
      size: The `models.Size`.
    """
    inputs = tf.placeholder(tf.int32, [size.batch, size.time], name="inputs")
    targets = tf.placeholder(tf.int32, [size.batch, size.time], name="targets")
    drawn = tf.random_uniform_initializer(-size.range, size.range)
    with tf.variable_scope("model", initializer=drawn):
        embedding = tf.get_variable("embedding", [size.vocabulary, size.units])
        x = tf.nn.embedding_lookup(embedding, tf.transpose(inputs))
        h, carry_on = LAYERS[cell](size, dropped(x, size))
        kernel = tf.get_variable("softmax_w", [size.units, size.vocabulary])
        bias = tf.get_variable("softmax_b", [size.vocabulary])
    logits = tf.matmul(tf.reshape(h, [-1, size.units]), kernel) + bias
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=tf.reshape(tf.transpose(targets), [-1]), logits=logits
    )
    loss = tf.reduce_mean(entropy, name="loss")

    variables = tf.trainable_variables()
    # As published, the cost is summed over the steps: the learning rate and the norm are for that.
    gradients = tf.gradients(tf.reduce_sum(entropy) / size.batch, variables)
    clipped, _ = tf.clip_by_global_norm(gradients, size.clip)
    optimizer = tf.train.GradientDescentOptimizer(models.LEARNING_RATE)
    update = optimizer.apply_gradients(zip(clipped, variables))

    for key, value in {
        models.INPUTS: inputs,
        models.TARGETS: targets,
        models.LOGITS: logits,
        models.LOSS: loss,
        models.TRAIN_OP: tf.group(update, *carry_on, name="train"),
        models.INIT_OP: tf.global_variables_initializer(),
    }.items():
        tf.add_to_collection(key, value)


def lstm_block_cell(size, x):
    """Layers of `LSTMBlockCell`, unrolled.

    Args:
      size: The `models.Size`.
      x: float32 [time, batch, units].

    Returns:
      The outputs of the last layer, float32 [time, batch, units], and operations that keep the
      layers' last states for the next training step.
    """
    return unrolled(tf.contrib.rnn.LSTMBlockCell, size, x)


def basic_lstm_cell(size, x):
    """Layers of `BasicLSTMCell`, unrolled; arguments and results as of `lstm_block_cell`."""
    return unrolled(tf.nn.rnn_cell.BasicLSTMCell, size, x)


def unrolled(kind, size, x):
    """Layers of an LSTM cell's class; other arguments and results as of `lstm_block_cell`."""

    def layer():
        cell = kind(size.units, forget_bias=0.0)
        if size.keep == 1.0:
            return cell
        return tf.nn.rnn_cell.DropoutWrapper(cell, output_keep_prob=size.keep)

    cells = tf.nn.rnn_cell.MultiRNNCell([layer() for _ in range(models.LAYERS)])
    kept = [(kept_state(size), kept_state(size)) for _ in range(models.LAYERS)]
    first = tuple(tf.nn.rnn_cell.LSTMStateTuple(c.read_value(), h.read_value()) for c, h in kept)
    outputs, last = tf.nn.static_rnn(cells, tf.unstack(x), initial_state=first)
    carry_on = [
        variable.assign(value)
        for variables, values in zip(kept, last)
        for variable, value in zip(variables, values)
    ]
    return tf.stack(outputs), carry_on


def gru_block_cell(size, x):
    """Layers of `GRUBlockCellV2`, each a loop; arguments and results as of `lstm_block_cell`."""
    return looped(tf.contrib.rnn.GRUBlockCellV2, size, x)


def gru_cell(size, x):
    """Layers of `GRUCell`, each a loop; arguments and results as of `lstm_block_cell`."""
    return looped(tf.nn.rnn_cell.GRUCell, size, x)


def looped(kind, size, x):
    """Layers of a GRU cell's class; other arguments and results as of `lstm_block_cell`.

    Dropout is between the loops: within one, steps that run at the same time would draw their
    random numbers in any order.
    """
    carry_on = []
    for number in range(models.LAYERS):
        kept = kept_state(size)
        x, last = tf.nn.dynamic_rnn(
            kind(size.units),
            x,
            initial_state=kept.read_value(),
            time_major=True,
            scope=f"layer_{number}",
        )
        x = dropped(x, size)
        carry_on.append(kept.assign(last))
    return x, carry_on


def lstm_block_fused_cell(size, x):
    """Layers of `LSTMBlockFusedCell`; arguments and results as of `lstm_block_cell`."""
    carry_on = []
    for number in range(models.LAYERS):
        c, h = kept_state(size), kept_state(size)
        cell = tf.contrib.rnn.LSTMBlockFusedCell(
            size.units, forget_bias=0.0, name=f"layer_{number}"
        )
        x, (last_c, last_h) = cell(x, initial_state=(c.read_value(), h.read_value()))
        x = dropped(x, size)
        carry_on += [c.assign(last_c), h.assign(last_h)]
    return x, carry_on


LAYERS = {
    "lstm_block_cell": lstm_block_cell,
    "gru_block_cell": gru_block_cell,
    "lstm_block_fused_cell": lstm_block_fused_cell,
    "basic_lstm_cell": basic_lstm_cell,
    "gru_cell": gru_cell,
}
"""What builds the recurrent layers, by key of `models.CELLS`."""


def dropped(x, size):
    """Returns x after dropout, where the model has any."""
    return x if size.keep == 1.0 else tf.nn.dropout(x, rate=1.0 - size.keep)


def kept_state(size):
    """Returns a new variable for a layer's state between two training steps."""
    return tf.get_variable(
        tf.get_default_graph().unique_name("state"),
        [size.batch, size.units],
        initializer=tf.zeros_initializer(),
        trainable=False,
        # Read and assigned in the same step: only a resource's value outlives the assignment.
        use_resource=True,
    )


def meta_graph(cell, size):
    """Returns the MetaGraph of a kind of cell and a size as bytes, the same bytes at every run."""
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(models.GRAPH_SEED)
        language_model(cell, size)
        return meta_graphs.serialized(tf, graph)


def compressed(data):
    """Returns data in gzip's format, without the time."""
    file = io.BytesIO()
    with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as stream:
        stream.write(data)
    return file.getvalue()


def arguments():
    """Parses the command line."""
    parser = argparse.ArgumentParser(
        description="Write training graphs of the word model (TensorFlow 1.15)."
    )
    parser.add_argument(
        "--sizes",
        nargs="+",
        choices=list(models.SIZES),
        default=["tiny", "small", "medium"],
        help="which ones (default: those that are committed)",
    )
    parser.add_argument(
        "--cells",
        nargs="+",
        choices=list(models.CELLS),
        default=list(models.CELLS),
        help="which ones (default: all)",
    )
    parser.add_argument(
        "--output", type=pathlib.Path, default=models.GRAPHS, help="folder (default: graphs/)"
    )
    parser.add_argument("--name", help="name for a size with changes, in file names")
    changes = parser.add_argument_group("changes to the sizes")
    for field, kind in (("units", int), ("time", int), ("batch", int), ("vocabulary", int)):
        changes.add_argument(f"--{field}", type=kind)
    changes.add_argument("--keep", type=float, help="share that dropout keeps")
    result = parser.parse_args()
    if not tf.__version__.startswith("1.15."):
        parser.error(f"TensorFlow 1.15 is needed, this is {tf.__version__}")
    fields = ("name", "units", "time", "batch", "vocabulary", "keep")
    result.changes = {
        field: getattr(result, field) for field in fields if getattr(result, field) is not None
    }
    if result.changes and not result.name:
        parser.error("a size with changes needs a --name")
    if result.name and len(result.sizes) > 1:
        parser.error("changes are for one size: name it with --sizes")
    return result


def main():
    """Command line."""
    options = arguments()
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
    options.output.mkdir(parents=True, exist_ok=True)
    for name in options.sizes:
        size = models.SIZES[name]._replace(**options.changes)
        for cell in options.cells:
            path = models.meta(cell, size.name, options.output)
            data = meta_graph(cell, size)
            # Hundreds of steps have nodes of nearly the same names: a twentieth of it is left.
            path.write_bytes(compressed(data))
            print(f"{path} ({len(data):,} bytes, {path.stat().st_size:,} compressed)")


if __name__ == "__main__":
    main()
