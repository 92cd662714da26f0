"""Writes the frozen graphs of this folder: inference with cells of TensorFlow 1.15 in loops.

`x` and `lengths` are fed, `out0`, `out1`, ... are the outputs and the last states. Where the graph
has an operation `init`, its variables are not frozen.

    .venv-1.15/bin/python tests/python/graph_pass/layers/write.py [NAME ...]
"""

import gzip
import sys
from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import graph_util

FOLDER = Path(__file__).resolve().parent
BATCH, STEPS, INPUT, CELL = 3, 5, 7, 9
rnn, block = tf.nn.rnn_cell, tf.contrib.rnn


def x(batch=None, steps=None, time_major=False, dtype=tf.float32):
    shape = [steps, batch] if time_major else [batch, steps]
    return tf.cast(tf.placeholder(tf.float32, shape + [INPUT], name="x"), dtype)


def lengths(batch=None):
    return tf.placeholder(tf.int32, [batch], name="lengths")


def dynamic(cell, inputs=None, **options):
    inputs = x() if inputs is None else inputs
    return tf.nn.dynamic_rnn(cell, inputs, dtype=inputs.dtype, **options)


def stack(cell, layers=2):
    return rnn.MultiRNNCell([cell(CELL) for _ in range(layers)])


def peepholes():
    return rnn.LSTMCell(CELL, use_peepholes=True, cell_clip=0.2, forget_bias=0.3)


def layer_norm(**options):
    return block.LayerNormBasicLSTMCell(CELL, **options)


def fixed():
    """All sizes are known, and the optimizers make constants of the numbers of steps."""
    inputs = x(BATCH, STEPS, time_major=True)
    return dynamic(rnn.BasicLSTMCell(CELL), inputs, time_major=True)


def with_initial_state():
    state = [
        tf.placeholder_with_default(tf.fill([3, CELL], value), [None, CELL])
        for value in (0.3, -0.4)
    ]
    inputs = x()
    return dynamic(rnn.LSTMCell(CELL), inputs, initial_state=rnn.LSTMStateTuple(*state))


def both_directions():
    cells = rnn.LSTMCell(CELL), rnn.LSTMCell(CELL)
    return tf.nn.bidirectional_dynamic_rnn(*cells, x(), sequence_length=lengths(), dtype=tf.float32)


def in_a_branch():
    inputs = x()

    def one():
        return dynamic(rnn.GRUCell(CELL), inputs)

    def other():
        return (
            tf.zeros_like(inputs)[:, :, :1] * tf.zeros([CELL]),
            tf.zeros([tf.shape(inputs)[0], CELL]),
        )

    return tf.cond(tf.reduce_sum(inputs) > 0.0, one, other)


def in_another_loop():
    """An outer loop runs the sequence three times."""
    inputs, cell = x(), rnn.BasicLSTMCell(CELL)

    def body(count, total):
        outputs, _ = dynamic(cell, inputs + tf.cast(count, tf.float32))
        return count + 1, total + tf.reduce_sum(outputs, 1)

    start = [tf.constant(0), tf.zeros([tf.shape(inputs)[0], CELL])]
    shapes = [tf.TensorShape([]), tf.TensorShape([None, CELL])]
    return tf.while_loop(lambda count, _: count < 3, body, start, shape_invariants=shapes)[1]


def only_the_state():
    return dynamic(rnn.GRUCell(CELL), sequence_length=lengths())[1]


def projection():
    return dynamic(rnn.LSTMCell(CELL, num_proj=4))


def residual():
    return dynamic(rnn.ResidualWrapper(rnn.GRUCell(INPUT)))


def unstacked(axis=1, dtype=tf.float32):
    steps = x(steps=STEPS, time_major=not axis, dtype=dtype)
    return tf.unstack(steps, STEPS, axis)


def static(cell, axis=1, dtype=tf.float32, **options):
    outputs, state = tf.nn.static_rnn(cell, unstacked(axis, dtype), dtype=dtype, **options)
    return tf.stack(outputs), state


def static_last():
    """As classifiers have it: the last output alone."""
    return tf.nn.static_rnn(stack(rnn.LSTMCell), unstacked(), dtype=tf.float32)[0][-1]


def static_both_directions():
    cells = rnn.LSTMCell(CELL), rnn.LSTMCell(CELL)
    return tf.nn.static_bidirectional_rnn(*cells, unstacked(), dtype=tf.float32)


def static_lengths():
    """Each step is in a branch of its own, which is not taken behind the longest row's end."""
    return static(rnn.BasicLSTMCell(CELL), sequence_length=lengths())


def static_feedback():
    """Each step takes a part of the output before it."""
    cell, state, outputs = rnn.LSTMCell(CELL), None, []
    for step in unstacked():
        state = state or cell.zero_state(tf.shape(step)[0], tf.float32)
        step = step + outputs[-1][:, :INPUT] if outputs else step
        output, state = cell(step, state)
        outputs.append(output)
    return outputs


def own_loop():
    """A loop of one's own that begins with the last step."""
    inputs, cell = tf.transpose(x(), [1, 0, 2]), rnn.GRUCell(CELL)
    steps = tf.shape(inputs)[0]

    def body(t, state):
        return t + 1, cell(inputs[steps - 1 - t], state)[1]

    state = tf.zeros([tf.shape(inputs)[1], CELL])
    return tf.while_loop(lambda t, _: t < steps, body, [tf.constant(0), state])[1]


def block_peepholes():
    return block.LSTMBlockCell(CELL, forget_bias=0.3, cell_clip=0.2, use_peephole=True)


def block_state_of_one_row():
    """TensorFlow's cell does not broadcast it, whatever the plain ones do."""
    state = [
        tf.placeholder_with_default(tf.fill([rows, CELL], value), [None, CELL])
        for rows, value in ((1, 0.3), (3, -0.4))
    ]
    return dynamic(block.LSTMBlockCell(CELL), x(), initial_state=rnn.LSTMStateTuple(*state))


def block_both_directions():
    cells = block.LSTMBlockCell(CELL), block.GRUBlockCellV2(CELL)
    return tf.nn.bidirectional_dynamic_rnn(*cells, x(), sequence_length=lengths(), dtype=tf.float32)


def with_lists(make):
    """With loops of TensorFlow 2, whose arrays are lists."""

    def made():
        tf.enable_control_flow_v2()
        try:
            return make()
        finally:
            tf.disable_control_flow_v2()

    return made


def with_resources(make):
    """With variables of TensorFlow 2, which the rounds of a loop read."""

    def made():
        with tf.variable_scope("", use_resource=True):
            return make()

    return made


GRAPHS = {
    "basic": lambda: dynamic(rnn.BasicLSTMCell(CELL)),
    "basic_lengths": lambda: dynamic(rnn.BasicLSTMCell(CELL), sequence_length=lengths()),
    "fixed": fixed,
    "fixed_lengths": lambda: dynamic(
        rnn.LSTMCell(CELL), x(BATCH, STEPS), sequence_length=lengths(BATCH)
    ),
    "peepholes": lambda: dynamic(peepholes(), sequence_length=lengths()),
    "initial_state": with_initial_state,
    "two_layers": lambda: dynamic(stack(rnn.LSTMCell)),
    "two_layers_lengths": lambda: dynamic(stack(rnn.LSTMCell), sequence_length=lengths()),
    "both_directions": both_directions,
    "half": lambda: dynamic(rnn.LSTMCell(CELL), x(dtype=tf.float16), sequence_length=lengths()),
    "gru": lambda: dynamic(rnn.GRUCell(CELL)),
    "gru_lengths": lambda: dynamic(rnn.GRUCell(CELL), sequence_length=lengths()),
    "gru_half": lambda: dynamic(rnn.GRUCell(CELL), x(dtype=tf.float16), sequence_length=lengths()),
    "gru_two_layers": lambda: dynamic(stack(rnn.GRUCell), sequence_length=lengths()),
    "gru_only_the_state": only_the_state,
    "relu": lambda: dynamic(rnn.LSTMCell(CELL, activation=tf.nn.relu), sequence_length=lengths()),
    "linear": lambda: dynamic(rnn.BasicLSTMCell(CELL, activation=lambda state: state)),
    "gru_relu": lambda: dynamic(rnn.GRUCell(CELL, activation=tf.nn.relu)),
    "static_relu": lambda: static(rnn.BasicLSTMCell(CELL, activation=tf.nn.relu)),
    "layer_norm": lambda: dynamic(layer_norm(), sequence_length=lengths()),
    "layer_norm_two_layers": lambda: dynamic(
        rnn.MultiRNNCell([layer_norm(), layer_norm(forget_bias=0.0, activation=tf.nn.relu)])
    ),
    "layer_norm_fixed": lambda: dynamic(layer_norm(), x(BATCH, STEPS)),
    "layer_norm_half": lambda: dynamic(layer_norm(), x(dtype=tf.float16)),
    "static_layer_norm": lambda: static(layer_norm()),
    "in_a_branch": in_a_branch,
    "in_another_loop": in_another_loop,
    "projection": projection,
    "residual": residual,
    "own_loop": own_loop,
    "static": lambda: static(rnn.BasicLSTMCell(CELL)),
    "static_time_major": lambda: static(peepholes(), axis=0),
    "static_two_layers": lambda: static(stack(rnn.LSTMCell)),
    "static_last": static_last,
    "static_both_directions": static_both_directions,
    "static_gru": lambda: static(stack(rnn.GRUCell)),
    "static_gru_half": lambda: static(rnn.GRUCell(CELL), dtype=tf.float16),
    "static_lengths": static_lengths,
    "static_feedback": static_feedback,
    "block": lambda: dynamic(block.LSTMBlockCell(CELL)),
    "block_lengths": lambda: dynamic(block.LSTMBlockCell(CELL), sequence_length=lengths()),
    "block_peepholes": lambda: dynamic(block_peepholes(), sequence_length=lengths()),
    "block_half": lambda: dynamic(
        block.LSTMBlockCell(CELL), x(dtype=tf.float16), sequence_length=lengths()
    ),
    "block_two_layers": lambda: dynamic(stack(block.LSTMBlockCell), sequence_length=lengths()),
    "block_both_directions": block_both_directions,
    "block_state_of_one_row": block_state_of_one_row,
    "block_gru": lambda: dynamic(block.GRUBlockCell(CELL), sequence_length=lengths()),
    "block_gru_two_layers": lambda: dynamic(stack(block.GRUBlockCellV2)),
    "static_block": lambda: static(block.LSTMBlockCell(CELL)),
    "static_block_peepholes": lambda: static(block_peepholes(), axis=0),
    "static_block_two_layers": lambda: static(stack(block.LSTMBlockCell)),
    "static_block_gru": lambda: static(block.GRUBlockCell(CELL)),
    "resources_block": with_resources(lambda: dynamic(block_peepholes())),
    "resources": with_resources(lambda: dynamic(rnn.LSTMCell(CELL))),
    "resources_gru": with_resources(lambda: dynamic(rnn.GRUCell(CELL), sequence_length=lengths())),
}
GRAPHS.update(
    {
        "lists_" + name: with_lists(GRAPHS[name])
        for name in (
            "basic",
            "basic_lengths",
            "fixed",
            "fixed_lengths",
            "layer_norm",
            "peepholes",
            "block",
            "block_peepholes",
            "block_gru_two_layers",
            "two_layers_lengths",
            "half",
            "gru_half",
            "gru_two_layers",
            "gru_only_the_state",
            "in_a_branch",
            "resources",
            "residual",
        )
    }
)


def written(make, is_frozen):
    """The graph that `make` builds. Its variables are not zero, and constants if it is frozen."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        tf.set_random_seed(3)
        tensors = tf.contrib.framework.nest.flatten(make())
        names = [f"out{k}" for k in range(len(tensors))]
        for name, tensor in zip(names, tensors):
            tf.identity(tf.cast(tensor, tf.float32), name=name)
        session.run(tf.global_variables_initializer())
        random = np.random.RandomState(1)
        for variable in tf.global_variables():
            for part, low, high in (("bias", -1, 1), ("gamma", 0.5, 1.5), ("beta", -0.5, 0.5)):
                if part in variable.name:
                    variable.load(random.uniform(low, high, variable.shape.as_list()), session)
        if not is_frozen:
            variables = tf.global_variables()
            values = session.run(variables)
            assigned = [one.assign(value) for one, value in zip(variables, values)]
            tf.group(*assigned, name="init")
            return graph.as_graph_def()
        return graph_util.convert_variables_to_constants(session, graph.as_graph_def(), names)


def main():
    for name in sys.argv[1:] or GRAPHS:
        path = str(FOLDER / (name + ".pb.gz"))
        with open(path, "wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as file:
            definition = written(GRAPHS[name], is_frozen="resources" not in name)
            file.write(definition.SerializeToString())


if __name__ == "__main__":
    main()
