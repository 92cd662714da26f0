"""Gradients of whole networks, for `test_rewrite`: each function is one network.

A function returns the gradients, and which ops were in the graph that ran.
"""

import collections
import functools
import gzip
import re
from pathlib import Path

import numpy as np
import tensorflow as tf

import blockcell
from helpers import sampling

GRAPHS = Path(__file__).resolve().parent.parent / "graph_pass" / "graphs"
BATCH, INPUT, CELL, STEPS = 3, 5, 7, 4
v1 = tf.compat.v1
# With and without TensorFlow's own optimizers. What these leave alone is the same in every release.
OPTIMIZED = (True, False) if sampling.whole_in(tf) else (True,)


def prepare():
    blockcell.load()


def run(session, fetches, feeds=None):
    """Runs a session; returns the values in lists, and how often each op ran in the graph."""
    metadata = v1.RunMetadata()
    options = v1.RunOptions(output_partition_graphs=True)
    values = session.run(fetches, feeds, options=options, run_metadata=metadata)
    # Where TensorFlow uses oneDNN, ops get a prefix.
    ops = collections.Counter(
        re.sub("^_Mkl(Native)?", "", node.op)
        for graph in metadata.partition_graphs
        for node in graph.node
    )
    return {"values": as_lists(values), "ops": ops}


def as_lists(values):
    return [np.asarray(value, np.float64).tolist() for value in values if value is not None]


def config(optimized=True):
    """Of a session with two CPUs, with or without TensorFlow's own optimizers."""
    options = v1.ConfigProto(device_count={"CPU": 2})
    options.graph_options.rewrite_options.disable_meta_optimizer = not optimized
    return options


def counted(function):
    """The result of a function, and what the library says that it rewrote meanwhile."""
    before = blockcell.info()["rewritten"]
    result = function()
    after = blockcell.info()["rewritten"]
    return dict(result, rewritten={op: after[op] - before[op] for op in after})


def meta_graph(path, optimized):
    """The gradients of a MetaGraph of cells of TensorFlow 1.15."""
    with gzip.open(str(path)) as file:
        definition = v1.MetaGraphDef.FromString(file.read())
    with tf.Graph().as_default() as graph:
        v1.train.import_meta_graph(definition)
        results = graph.get_operation_by_name("results").outputs
        with v1.Session(config=config(optimized)) as session:
            session.run("initialize")
            return counted(lambda: run(session, results))


def _inputs(weights):
    """Values of x, of the states, and of parameters of these shapes."""
    random = np.random.RandomState(4)
    shapes = [[BATCH, STEPS, INPUT], [BATCH, CELL]] + weights
    return [tf.constant(random.uniform(-0.5, 0.5, shape).astype(np.float32)) for shape in shapes]


def _lstm_step(x, state, parameters):
    w, wci, wcf, wco, b = parameters
    c, h = state
    names = dict(x=x, cs_prev=c, h_prev=h, w=w, wci=wci, wcf=wcf, wco=wco, b=b)
    outputs = tf.raw_ops.LSTMBlockCell(use_peephole=True, **names)
    return outputs.cs, outputs.h


def _gru_step(x, state, parameters):
    w_ru, w_c, b_ru, b_c = parameters
    (h,) = state
    return (tf.raw_ops.GRUBlockCell(x=x, h_prev=h, w_ru=w_ru, w_c=w_c, b_ru=b_ru, b_c=b_c).h,)


def _basic_step(x, state, parameters):
    w, b = parameters
    c, h = state
    gates = tf.nn.bias_add(tf.matmul(tf.concat([x, h], 1), w), b)
    i, ci, f, o = tf.split(gates, 4, 1)
    c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(ci)
    return c, tf.tanh(c) * tf.sigmoid(o)


def _plain_gru_step(x, state, parameters):
    w_ru, w_c, b_ru, b_c = parameters
    (h,) = state
    gates = tf.nn.bias_add(tf.matmul(tf.concat([x, h], 1), w_ru), b_ru)
    r, u = tf.split(tf.sigmoid(gates), 2, 1)
    c = tf.tanh(tf.nn.bias_add(tf.matmul(tf.concat([x, r * h], 1), w_c), b_c))
    return (u * h + (1.0 - u) * c,)


ROWS = INPUT + CELL
CELLS = {
    "lstm": (_lstm_step, 2, [[ROWS, 4 * CELL]] + [[CELL]] * 3 + [[4 * CELL]]),
    "gru": (_gru_step, 1, [[ROWS, 2 * CELL], [ROWS, CELL], [2 * CELL], [CELL]]),
    "basic": (_basic_step, 2, [[ROWS, 4 * CELL], [4 * CELL]]),
    "plain_gru": (_plain_gru_step, 1, [[ROWS, 2 * CELL], [ROWS, CELL], [2 * CELL], [CELL]]),
}


def in_function(cell, loop, variables=False, outside=False):
    """The gradients of one cell's steps in a tf.function, of parameters or of variables.

    They are taken in the function, or outside of it.
    """
    step, states, shapes = CELLS[cell]
    inputs = _inputs(shapes)
    own = [tf.Variable(value) for value in inputs[2:]] if variables else []

    def loss_of(x, state, parameters):
        after = [state] * states
        if loop:
            after = tf.while_loop(
                lambda t, *_: t < STEPS,
                lambda t, *state: (t + 1,) + step(x[:, t], state, parameters),
                [tf.constant(0)] + after,
            )[1:]
        else:
            for t in range(STEPS):
                after = step(x[:, t], after, parameters)
        return tf.add_n([tf.reduce_sum(tf.sin(value)) for value in after])

    loss = tf.function(loss_of) if outside else loss_of

    def gradients(x, state, *parameters):
        parameters = list(parameters) or own
        with tf.GradientTape() as tape:
            tape.watch([x, state, parameters])
            value = loss(x, state, parameters)
        return tape.gradient(value, [x, state] + parameters)

    call = gradients if outside else tf.function(gradients)
    given = inputs[:2] if variables else inputs
    return counted(lambda: {"values": as_lists(call(*given))})


for _path in GRAPHS.glob("*.meta.gz"):
    _name = _path.name.split(".")[0]
    globals()[_name] = functools.partial(meta_graph, _path, True)
    globals()[_name + "_not_optimized"] = functools.partial(meta_graph, _path, False)
for _name in CELLS:
    globals()["function_" + _name] = functools.partial(in_function, _name, False)
    globals()["function_loop_" + _name] = functools.partial(in_function, _name, True)
    globals()["function_variables_" + _name] = functools.partial(in_function, _name, True, True)
    globals()["function_outside_" + _name] = functools.partial(in_function, _name, True, True, True)
