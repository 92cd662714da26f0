"""Inference of frozen graphs, for `test_loops`: each function runs one graph on several feeds."""

import functools
import gzip
from pathlib import Path

import numpy as np
import tensorflow as tf

import blockcell
from blockcell import rnn
from helpers.failures import uncancelled
from rewrite import config, counted, run

GRAPHS = Path(__file__).resolve().parent.parent / "graph_pass" / "layers"
INPUT = 7
v1 = tf.compat.v1


def prepare():
    blockcell.load()


def _x(batch, steps, columns=INPUT, seed=0):
    random = np.random.RandomState(seed)
    return random.uniform(-1, 1, [batch, steps, columns]).astype(np.float32)


def _with_nan():
    x = _x(3, 5)
    x[1, 3:] = np.nan
    return x


# By name: x, and the lengths of its rows. The last ones are malformed.
FEEDS = {
    "rows": (_x(3, 5), [2, 5, 0]),
    "one": (_x(1, 1), [1]),
    "long": (_x(3, 5, seed=1), [9, -1, 3]),
    "ended": (_x(3, 5, seed=2), [0, 0, 0]),
    "early": (_x(3, 5, seed=3), [2, 1, 2]),
    "many": (_x(3, 20, seed=4), [20, 13, 1]),
    "nan": (_with_nan(), [5, 3, 4]),
    "no_rows": (_x(0, 5), []),
    "no_steps": (_x(3, 0), [0, 0, 0]),
    "wide": (_x(3, 5, columns=8), [2, 5, 0]),
    "few_lengths": (_x(3, 5), [2, 5]),
}


def frozen_graph(name, optimized):
    """The values or the error for each of the feeds, and what was rewritten for the first."""
    with gzip.open(str(GRAPHS / (name + ".pb.gz"))) as file:
        definition = v1.GraphDef.FromString(file.read())
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(definition, name="")
        names = {operation.name for operation in graph.get_operations()}
        outputs = [f"out{k}:0" for k in range(9) if f"out{k}" in names]
        with v1.Session(config=config(optimized)) as session:
            if "init" in names:
                session.run("init")
            results = {}
            for key, (x, lengths) in FEEDS.items():
                feeds = _feeds(graph, names, x, lengths)
                results[key] = counted(functools.partial(_outcome, session, outputs, feeds))
    rewritten = results["rows"]["rewritten"]
    return {"outcomes": results, "rewritten": {op: n for op, n in rewritten.items() if n}}


def in_a_function():
    """The same of a loop of TensorFlow 2 in a function of TensorFlow 2."""
    with gzip.open(str(GRAPHS / "lists_basic_lengths.pb.gz")) as file:
        definition = v1.GraphDef.FromString(file.read())
    wrapped = v1.wrap_function(lambda: tf.import_graph_def(definition, name=""), [])
    tensor = wrapped.graph.get_tensor_by_name
    feeds, fetches = ("x:0", "lengths:0"), ("out0:0", "out1:0", "out2:0")
    function = wrapped.prune([tensor(name) for name in feeds], [tensor(name) for name in fetches])

    def outcomes():
        results = {}
        for key, (x, lengths) in FEEDS.items():
            try:
                fed = tf.constant(x), tf.constant(lengths, tf.int32)
                tensors = uncancelled(functools.partial(function, *fed))
                values = [[y.numpy().tolist(), y.shape.as_list()] for y in tensors]
                results[key] = {"values": values}
            except (tf.errors.OpError, ValueError) as error:
                results[key] = {"error": type(error).__name__}
        return {"outcomes": results}

    return counted(outcomes)


def block_cells(make, loop, split):
    """The same of this package's cells: in a loop of arrays or lists, or one by one."""
    with tf.Graph().as_default():
        (v1.enable_control_flow_v2 if loop == "lists" else v1.disable_control_flow_v2)()
        v1.set_random_seed(1)
        x, cell = v1.placeholder(tf.float32, [5, 3, INPUT]), make(4)
        if loop == "static":
            steps, last = v1.nn.static_rnn(cell, tf.unstack(x), dtype=tf.float32)
            outputs = tf.stack(steps)
        else:
            outputs, last = v1.nn.dynamic_rnn(cell, x, dtype=tf.float32, time_major=True)
        if split:
            left, right = tf.split(outputs, 2, axis=2)
            outputs = tf.concat([tf.tanh(right), left], axis=2)
        fetches = [outputs, *tf.nest.flatten(last)]
        with v1.Session(config=config()) as session:
            session.run(v1.global_variables_initializer())
            return counted(functools.partial(_outcome, session, fetches, {x: _x(5, 3)}))


for _name, _make in (("lstm", rnn.LSTMBlockCell), ("gru", rnn.GRUBlockCellV2)):
    for _loop in ("dynamic", "static", "lists"):
        for _split in (False, True):
            _cells = functools.partial(block_cells, _make, _loop, _split)
            globals()[f"block_cells_{_name}_{_loop}" + "_beside_a_split" * _split] = _cells


def _feeds(graph, names, x, lengths):
    """The feeds of one run. Where the graph has the steps before the batch, x has them so."""
    sizes = graph.get_tensor_by_name("x:0").shape.as_list()
    if sizes[0] == 5:
        x = x.transpose([1, 0, 2])
    feeds = {"x:0": x}
    if "lengths" in names:
        feeds["lengths:0"] = np.asarray(lengths, np.int32)
    return feeds


def _outcome(session, outputs, feeds):
    try:
        result = uncancelled(lambda: run(session, outputs, feeds))
    except (tf.errors.OpError, ValueError) as error:
        return {"error": type(error).__name__}
    values = [[value, list(np.shape(value))] for value in result["values"]]
    return {"values": values, "ops": result["ops"]}


for _path in GRAPHS.glob("*.pb.gz"):
    _name = _path.name.split(".")[0]
    globals()[_name] = functools.partial(frozen_graph, _name, True)
    globals()[_name + "_not_optimized"] = functools.partial(frozen_graph, _name, False)
