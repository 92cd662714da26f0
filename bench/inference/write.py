"""Writes the frozen graphs, in TensorFlow 1.15: `python -m bench.inference.write`."""

import tensorflow as tf

from bench.inference.nets import BIDIRECTIONAL, BLOCK, KERAS2, KERAS3, LENGTHS, NETS, STACK
from bench.nets import weights


def build(net):
    """Adds the loop of a net to the graph, and names its inputs and results."""
    if net.form == BLOCK:
        make = {"lstm": tf.contrib.rnn.LSTMBlockCell, "gru": tf.contrib.rnn.GRUBlockCellV2}
    else:
        make = {"lstm": tf.nn.rnn_cell.BasicLSTMCell, "gru": tf.nn.rnn_cell.GRUCell}
    x = tf.placeholder(tf.float32, [None, None, net.input_size], name="x")
    options = {"dtype": tf.float32}
    if net.form == LENGTHS:
        options["sequence_length"] = tf.placeholder(tf.int32, [None], name="lengths")
    cells = [make[net.cell](net.units) for _ in range(net.cells)]
    if net.form == BIDIRECTIONAL:
        outputs, states = tf.nn.bidirectional_dynamic_rnn(*cells, x, **options)
        output = tf.concat(outputs, 2)
    else:
        cell = tf.nn.rnn_cell.MultiRNNCell(cells) if net.form == STACK else cells[0]
        output, states = tf.nn.dynamic_rnn(cell, x, **options)
    for name, result in zip(net.results, [output, *tf.nest.flatten(states)]):
        tf.identity(result, name=name)


def frozen(net):
    """A graph whose weights and biases are constants, none of which is zero."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        build(net)
        session.run(tf.global_variables_initializer())
        variables = tf.global_variables()
        for variable, value in zip(variables, weights([v.shape.as_list() for v in variables])):
            variable.load(value, session)
        definition = graph.as_graph_def()
        return tf.graph_util.convert_variables_to_constants(session, definition, net.results)


def main():
    """Writes all of them."""
    for net in NETS:
        if net.form in (KERAS2, KERAS3):
            continue
        net.file.parent.mkdir(parents=True, exist_ok=True)
        net.file.write_bytes(frozen(net).SerializeToString())


if __name__ == "__main__":
    main()
