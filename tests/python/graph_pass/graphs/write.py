"""Writes the MetaGraphs of this folder, with cells of TensorFlow 1.15.

Each is the forward pass of a recurrent network and the gradients of a loss with respect to all of
its variables and inputs, as TensorFlow 1.15 takes them. Nothing is fed: node `initialize` sets the
variables, and the gradients are the outputs of node `results`.

    .venv-1.15/bin/python tests/python/graph_pass/graphs/write.py [NAME ...]
"""

import gzip
import sys
from pathlib import Path

import tensorflow as tf
from tensorflow.contrib import rnn, seq2seq

FOLDER = Path(__file__).resolve().parent
BATCH, INPUT, CELL, STEPS = 3, 5, 7, 4
LENGTHS = [2, 4, 3]


def lstm(peephole=False, dtype=tf.float32):
    return rnn.LSTMBlockCell(CELL, use_peephole=peephole, dtype=dtype)


def gru():
    return rnn.GRUBlockCellV2(CELL)


def basic():
    return tf.nn.rnn_cell.BasicLSTMCell(CELL)


def plain(**options):
    return tf.nn.rnn_cell.LSTMCell(CELL, **options)


def plain_gru(**options):
    return tf.nn.rnn_cell.GRUCell(CELL, **options)


def inputs(steps=STEPS, unknown_batch=False, dtype=tf.float32):
    """A tensor [batch, steps, input] that depends on a variable."""
    x = tf.get_variable(
        "x", initializer=tf.random_uniform([BATCH, steps, INPUT], -1, 1, seed=1), use_resource=False
    )
    shape = [None if unknown_batch else BATCH, steps, INPUT]
    return tf.cast(tf.placeholder_with_default(x, shape), dtype)


def static(cell, x):
    return rnn.static_rnn(cell, tf.unstack(x, axis=1), dtype=x.dtype)


def dynamic(cell, x, **options):
    return tf.nn.dynamic_rnn(cell, x, dtype=x.dtype, **options)


def shared_static():
    cell, x = lstm(), inputs()
    return static(cell, x), static(cell, tf.reverse(x, [1]))


def shared_in_loop(cell):
    """One cell twice in each round of a loop."""
    x = inputs()
    state = [tf.zeros([BATCH, CELL])] * 2
    cell(x[:, 0], tuple(state))

    def body(step, c, h):
        once, (c, h) = cell(x[:, step], (c, h))
        _, (c, h) = cell(x[:, step] * 0.5, (c, h + once))
        return step + 1, c, h

    loop = tf.while_loop(lambda step, *_: step < STEPS, body, [0] + state, parallel_iterations=4)
    return loop[1:]


def with_initial_state():
    """A state of one row, which is the same for all rows of the batch."""
    x = inputs()
    c, h = tf.get_variable("c", [1, CELL]), tf.get_variable("h", [BATCH, CELL])
    state = tf.nn.rnn_cell.LSTMStateTuple(c, h)
    return rnn.static_rnn(basic(), tf.unstack(x, axis=1), initial_state=state)


def stopped_output():
    """The output of the last step has no gradient."""
    _, state = static(basic(), inputs())
    return state.c * tf.stop_gradient(state.h)


def one_row_for_many():
    """A step with gates of one row and states of several, which TensorFlow learns late."""
    x = tf.placeholder_with_default(inputs()[:1, 0], [None, INPUT])
    c, h = tf.get_variable("c", [BATCH, CELL]), tf.get_variable("h", [1, CELL])
    c, h = (tf.placeholder_with_default(state, [None, CELL]) for state in (c, h))
    return basic()(x, tf.nn.rnn_cell.LSTMStateTuple(c, h))


def in_cond():
    cell, x = gru(), inputs()
    state = tf.zeros([BATCH, CELL])
    cell(x[:, 0], state)
    return tf.cond(
        tf.reduce_sum(x) < 1e9, lambda: cell(x[:, 1], state)[0], lambda: tf.identity(state)
    )


def raw(cell):
    """A loop whose function feeds the cell, as tf.nn.raw_rnn has it."""
    x = inputs(unknown_batch=True)
    frames = tf.TensorArray(tf.float32, STEPS, clear_after_read=False)
    frames = frames.unstack(tf.transpose(x, [1, 0, 2]))

    def loop(step, output, state, _):
        ends = tf.greater_equal(step, LENGTHS)
        if output is None:
            return ends, frames.read(0), cell.zero_state(BATCH, tf.float32), None, None
        after = frames.read(tf.minimum(step, STEPS - 1)) * tf.reduce_mean(output)
        return ends, after, state, output, None

    outputs, state, _ = tf.nn.raw_rnn(cell, loop)
    return outputs.stack(), state


def attending(lengths=None):
    """A cell that reads a memory of another length than the sequence has steps."""
    memory = tf.get_variable("memory", [BATCH, STEPS + 2, INPUT])
    attention = seq2seq.BahdanauAttention(INPUT + 1, memory, memory_sequence_length=lengths)
    return seq2seq.AttentionWrapper(basic(), attention, attention_layer_size=INPUT - 1)


def attention_dynamic():
    x = inputs()
    outputs, state = dynamic(attending(), x)
    return outputs, state.cell_state


def attention_decoder():
    x = inputs()
    cell = attending(LENGTHS)
    helper = seq2seq.TrainingHelper(x, LENGTHS)
    decoder = seq2seq.BasicDecoder(
        cell, helper, cell.zero_state(BATCH, tf.float32), tf.layers.Dense(INPUT)
    )
    outputs, state, _ = seq2seq.dynamic_decode(decoder, impute_finished=True)
    return outputs.rnn_output, state.cell_state


def dropout(cell, **options):
    """Drops inputs, states and outputs. Seeds make the same numbers in every run."""
    keep = dict(input_keep_prob=0.8, state_keep_prob=0.9, output_keep_prob=0.7)
    return tf.nn.rnn_cell.DropoutWrapper(cell, seed=3, dtype=tf.float32, **keep, **options)


def keras(cell):
    return tf.keras.layers.RNN(cell, return_sequences=True, return_state=True)(inputs())


def resource_variables(network):
    def build():
        tf.get_variable_scope().set_use_resource(True)
        return network()

    return build


def with_lists(build):
    """With loops of TensorFlow 2, whose arrays are lists, and with its variables."""

    def build_with_lists():
        tf.enable_control_flow_v2()
        try:
            return resource_variables(build)()
        finally:
            tf.disable_control_flow_v2()

    return build_with_lists


NETWORKS = {
    "lstm_static": lambda: static(lstm(), inputs()),
    "lstm_static_peephole": lambda: static(lstm(peephole=True), inputs(unknown_batch=True)),
    "lstm_static_half": lambda: static(lstm(dtype=tf.float16), inputs(dtype=tf.float16)),
    "lstm_static_two_layers": lambda: static(rnn.MultiRNNCell([lstm(), lstm()]), inputs()),
    "lstm_one_step": lambda: static(lstm(), inputs(steps=1)),
    "lstm_shared": shared_static,
    "lstm_shared_in_loop": lambda: shared_in_loop(lstm()),
    "lstm_dynamic": lambda: dynamic(lstm(), inputs()),
    "lstm_dynamic_lengths": lambda: dynamic(
        lstm(peephole=True), inputs(unknown_batch=True), sequence_length=LENGTHS
    ),
    "lstm_bidirectional": lambda: tf.nn.bidirectional_dynamic_rnn(
        lstm(), lstm(), inputs(), dtype=tf.float32
    ),
    "lstm_dynamic_resource": resource_variables(lambda: dynamic(lstm(), inputs())),
    "gru_static": lambda: static(gru(), inputs(unknown_batch=True)),
    "gru_one_step": lambda: static(gru(), inputs(steps=1)),
    "gru_static_bidirectional": lambda: rnn.static_bidirectional_rnn(
        gru(), gru(), tf.unstack(inputs(), axis=1), dtype=tf.float32
    ),
    "gru_dynamic": lambda: dynamic(gru(), inputs()),
    "gru_dynamic_two_layers": lambda: dynamic(
        rnn.MultiRNNCell([gru(), gru()]), inputs(unknown_batch=True), parallel_iterations=1
    ),
    "gru_in_cond": in_cond,
    "lstm_static_tree": lambda: static(lstm(), inputs()),
    "basic_static": lambda: static(basic(), inputs()),
    "basic_static_unknown_batch": lambda: static(basic(), inputs(unknown_batch=True)),
    "basic_static_half": lambda: static(basic(), inputs(dtype=tf.float16)),
    "basic_static_two_layers": lambda: static(rnn.MultiRNNCell([basic(), basic()]), inputs()),
    "basic_one_step": lambda: static(basic(), inputs(steps=1)),
    "basic_stopped_output": stopped_output,
    "basic_initial_state": with_initial_state,
    "basic_dynamic": lambda: dynamic(basic(), inputs()),
    "basic_dynamic_lengths": lambda: dynamic(
        basic(), inputs(unknown_batch=True), sequence_length=LENGTHS
    ),
    "basic_dynamic_half": lambda: dynamic(basic(), inputs(dtype=tf.float16)),
    "basic_dynamic_resource": resource_variables(lambda: dynamic(basic(), inputs())),
    "basic_dynamic_two_layers": lambda: dynamic(
        rnn.MultiRNNCell([basic(), basic()]), inputs(unknown_batch=True), parallel_iterations=1
    ),
    "basic_dynamic_swap": lambda: dynamic(basic(), inputs(), swap_memory=True),
    "basic_bidirectional": lambda: tf.nn.bidirectional_dynamic_rnn(
        basic(), basic(), inputs(), dtype=tf.float32
    ),
    "basic_shared_in_loop": lambda: shared_in_loop(basic()),
    "basic_one_row_for_many": one_row_for_many,
    "basic_residual": lambda: static(
        tf.nn.rnn_cell.ResidualWrapper(plain(num_proj=INPUT)), inputs()
    ),
    "plain_gru_static": lambda: static(plain_gru(), inputs()),
    "plain_gru_static_unknown_batch": lambda: static(plain_gru(), inputs(unknown_batch=True)),
    "plain_gru_static_half": lambda: static(plain_gru(), inputs(dtype=tf.float16)),
    "plain_gru_dynamic": lambda: dynamic(plain_gru(), inputs()),
    "plain_gru_dynamic_lengths": lambda: dynamic(
        plain_gru(), inputs(unknown_batch=True), sequence_length=LENGTHS
    ),
    "plain_gru_dynamic_resource": resource_variables(lambda: dynamic(plain_gru(), inputs())),
    "plain_gru_dynamic_two_layers": lambda: dynamic(
        rnn.MultiRNNCell([plain_gru(), plain_gru()]), inputs(unknown_batch=True)
    ),
    "plain_gru_bidirectional": lambda: tf.nn.bidirectional_dynamic_rnn(
        plain_gru(), plain_gru(), inputs(), dtype=tf.float32
    ),
    "plain_static": lambda: static(plain(forget_bias=0.0), inputs()),
    "plain_concatenated_state": lambda: static(plain(state_is_tuple=False), inputs()),
    "plain_peephole": lambda: static(plain(use_peepholes=True), inputs()),
    "plain_clip": lambda: static(plain(cell_clip=0.05), inputs()),
    "plain_projection": lambda: static(plain(num_proj=3, proj_clip=0.05), inputs()),
    "plain_dynamic_projection": lambda: dynamic(plain(num_proj=3, proj_clip=0.05), inputs()),
    "plain_dynamic_peephole": lambda: dynamic(plain(use_peepholes=True), inputs()),
    "plain_peephole_unknown_batch": lambda: static(
        plain(use_peepholes=True), inputs(unknown_batch=True)
    ),
    "plain_peephole_half": lambda: static(
        plain(use_peepholes=True, cell_clip=0.4), inputs(dtype=tf.float16)
    ),
    "plain_dynamic_peephole_lengths": lambda: dynamic(
        plain(use_peepholes=True), inputs(unknown_batch=True), sequence_length=LENGTHS
    ),
    "plain_clip_unknown_batch": lambda: static(plain(cell_clip=0.05), inputs(unknown_batch=True)),
    "plain_dynamic_clip": lambda: dynamic(plain(cell_clip=0.05), inputs()),
    "plain_everything": lambda: dynamic(
        plain(use_peepholes=True, cell_clip=0.3, num_proj=3, proj_clip=0.2),
        inputs(unknown_batch=True),
        sequence_length=LENGTHS,
    ),
    "plain_relu": lambda: static(plain(activation=tf.nn.relu), inputs()),
    "plain_relu_dynamic": lambda: dynamic(
        plain(activation=tf.nn.relu), inputs(unknown_batch=True), sequence_length=LENGTHS
    ),
    "plain_relu_peephole": lambda: dynamic(
        plain(activation=tf.nn.relu, use_peepholes=True, cell_clip=0.3), inputs()
    ),
    "plain_relu_lists": with_lists(lambda: dynamic(plain(activation=tf.nn.relu), inputs())),
    "plain_linear": lambda: static(plain(activation=tf.identity), inputs()),
    "plain_gru_relu": lambda: static(plain_gru(activation=tf.nn.relu), inputs()),
    "plain_gru_relu_dynamic": lambda: dynamic(
        plain_gru(activation=tf.nn.relu), inputs(unknown_batch=True), sequence_length=LENGTHS
    ),
    "plain_gru_relu_lists": with_lists(lambda: dynamic(plain_gru(activation=tf.nn.relu), inputs())),
    "layer_norm_static": lambda: static(rnn.LayerNormBasicLSTMCell(CELL), inputs()),
    # One round at a time, so that each takes the same random numbers in every run.
    "layer_norm_dropout": lambda: dynamic(
        rnn.LayerNormBasicLSTMCell(CELL, dropout_keep_prob=0.8, dropout_prob_seed=3),
        inputs(unknown_batch=True),
        parallel_iterations=1,
    ),
    "dropout_static": lambda: static(dropout(basic()), inputs()),
    # One round at a time, so that each takes the same random numbers in every run.
    "dropout_dynamic": lambda: dynamic(dropout(basic()), inputs(), parallel_iterations=1),
    "dropout_variational": lambda: dynamic(
        dropout(plain(), variational_recurrent=True, input_size=INPUT), inputs()
    ),
    "attention_dynamic": attention_dynamic,
    "attention_decoder": attention_decoder,
    "basic_lists": with_lists(lambda: dynamic(basic(), inputs(), sequence_length=LENGTHS)),
    "basic_lists_fixed": with_lists(lambda: dynamic(basic(), inputs())),
    "basic_lists_half": with_lists(lambda: dynamic(basic(), inputs(dtype=tf.float16))),
    "basic_lists_two_layers": with_lists(
        lambda: dynamic(rnn.MultiRNNCell([basic(), basic()]), inputs(unknown_batch=True))
    ),
    "basic_lists_bidirectional": with_lists(
        lambda: tf.nn.bidirectional_dynamic_rnn(
            basic(), basic(), inputs(), sequence_length=LENGTHS, dtype=tf.float32
        )
    ),
    "basic_lists_shared": with_lists(lambda: shared_in_loop(basic())),
    "plain_lists_clip": with_lists(lambda: dynamic(plain(cell_clip=0.05), inputs())),
    "plain_lists_peephole": with_lists(lambda: dynamic(plain(use_peepholes=True), inputs())),
    "plain_lists_everything": with_lists(
        lambda: dynamic(
            plain(use_peepholes=True, cell_clip=0.3, num_proj=3, proj_clip=0.2),
            inputs(unknown_batch=True),
            sequence_length=LENGTHS,
        )
    ),
    "plain_gru_lists": with_lists(lambda: dynamic(plain_gru(), inputs())),
    "plain_gru_lists_half": with_lists(lambda: dynamic(plain_gru(), inputs(dtype=tf.float16))),
    "plain_gru_lists_lengths": with_lists(
        lambda: dynamic(plain_gru(), inputs(unknown_batch=True), sequence_length=LENGTHS)
    ),
    "plain_gru_lists_two_layers": with_lists(
        lambda: dynamic(rnn.MultiRNNCell([plain_gru(), plain_gru()]), inputs(unknown_batch=True))
    ),
    "plain_gru_lists_bidirectional": with_lists(
        lambda: tf.nn.bidirectional_dynamic_rnn(
            plain_gru(), plain_gru(), inputs(), dtype=tf.float32
        )
    ),
    "mixed_lists": with_lists(
        lambda: dynamic(rnn.MultiRNNCell([plain_gru(), basic()]), inputs(), sequence_length=LENGTHS)
    ),
    "raw_lists": with_lists(lambda: raw(plain(num_proj=3))),
    "raw_projection": lambda: raw(plain(num_proj=3)),
    "mixed_dynamic": lambda: dynamic(
        rnn.MultiRNNCell([plain_gru(), basic()]), inputs(), sequence_length=LENGTHS
    ),
    "keras_lstm": lambda: keras(tf.keras.layers.LSTMCell(CELL)),
    "keras_lstm_joined": lambda: keras(
        tf.keras.layers.LSTMCell(CELL, recurrent_activation="sigmoid", implementation=2)
    ),
    "keras_gru": lambda: keras(
        tf.keras.layers.GRUCell(CELL, recurrent_activation="sigmoid", implementation=2)
    ),
}
TREE = {"lstm_static_tree"}  # Gradients are added up by a tree of Add.


def write(name):
    with tf.Graph().as_default():
        outputs = [
            tf.cast(y, tf.float32) for y in tf.contrib.framework.nest.flatten(NETWORKS[name]())
        ]
        loss = tf.add_n([tf.reduce_sum(tf.sin(y + k)) for k, y in enumerate(outputs)])
        for k, variable in enumerate(tf.global_variables()[1:]):
            low, high = (-0.5, 0.5)
            value = tf.random_uniform(variable.shape, low, high, seed=k + 2)
            tf.add_to_collection("values", tf.assign(variable, tf.cast(value, variable.dtype)))
        method = tf.AggregationMethod.EXPERIMENTAL_TREE if name in TREE else None
        gradients = tf.gradients(loss, tf.global_variables(), aggregation_method=method)
        tf.group(
            *tf.get_collection("values"), tf.global_variables()[0].initializer, name="initialize"
        )
        tf.identity_n([tf.cast(gradient, tf.float32) for gradient in gradients], name="results")
        meta_graph = tf.train.export_meta_graph(strip_default_attrs=True)
        path = str(FOLDER / (name + ".meta.gz"))
        with open(path, "wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as file:
            file.write(meta_graph.SerializeToString())


if __name__ == "__main__":
    for name in sys.argv[1:] or NETWORKS:
        write(name)
