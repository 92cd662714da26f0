"""Writes the frozen graphs, in TensorFlow 1.15: `python -m bench.inference.write`."""

import numpy as np
import tensorflow as tf

from bench.inference.nets import NETS


def frozen(net, seed=20191018):
    """A loop around a cell whose weights are constants, none of which is zero."""
    cells = {"lstm": tf.nn.rnn_cell.BasicLSTMCell, "gru": tf.nn.rnn_cell.GRUCell}
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, None, net.input_size], name="x")
        outputs, _ = tf.nn.dynamic_rnn(cells[net.cell](net.units), x, dtype=tf.float32)
        tf.identity(outputs, name="output")
        session.run(tf.global_variables_initializer())
        random = np.random.RandomState(seed)
        for variable in tf.global_variables():
            shape = variable.shape.as_list()
            variable.load(random.uniform(-1.0, 1.0, shape) / np.sqrt(shape[0]), session)
        definition = graph.as_graph_def()
        return tf.graph_util.convert_variables_to_constants(session, definition, ["output"])


def main():
    """Writes all of them."""
    for net in NETS:
        net.file.parent.mkdir(parents=True, exist_ok=True)
        net.file.write_bytes(frozen(net).SerializeToString())


if __name__ == "__main__":
    main()
