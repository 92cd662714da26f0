"""Ways in which a program can reach the stock ops, for `test_takeover`.

Each function goes one way with unlabelled nodes and proves whose kernel ran there. The library has
been loaded by plain `tf.load_op_library`, as a program without our Python package would.
"""

import functools
import threading

import numpy as np
import tensorflow as tf

import bad_calls
import blockcell
from blockcell.op_table import BLOCK_LSTM_GRAD, GRU_CELL_GRAD, LSTM_CELL_GRAD, OPS, STOCK
from blockcell_tools.reference.inputs import expected, inputs_of
from graph_files import ATTRIBUTES, node, path, types
from helpers import checks

ROUNDS = 3  # Of loops.


def prepare():
    tf.load_op_library(str(blockcell.find_library()))


def prove(call, ours=True):
    """Proves that `call` computes what the op should, and on whose kernel.

    Shapes are unknown until the kernel sees them. Both kernels refuse weights that have a row
    too many, but only ours says so in its own words.

    Args:
      call: Function of an op's name and a dictionary of arrays. It returns a dictionary of outputs.
      ours: Whether it has to be our kernel; otherwise it must not be.
    """
    for op in STOCK:
        inputs = inputs_of(op, 3, 2, 4, **ATTRIBUTES[op])
        got = {name: np.asarray(output) for name, output in call(op, inputs).items()}
        checks.assert_close(got, expected(op, inputs, **ATTRIBUTES[op]), 4e-6, op)

        weights = "w" if "w" in inputs else "w_ru"
        inputs[weights] = np.concatenate([inputs[weights], inputs[weights][:1]])
        try:
            call(op, inputs)
        except tf.errors.InvalidArgumentError as error:
            assert (f"{op}: {weights} must have shape" in str(error)) == ours, error
        else:
            raise AssertionError(f"{op} accepted {weights} of shape {inputs[weights].shape}")


def in_session(build, op, inputs, config=None):
    """Calls by a v1 session a graph that `build` makes from an op's name and placeholders."""
    with tf.Graph().as_default() as graph:
        feeds = {n: tf.compat.v1.placeholder(dtype) for n, dtype in types(op).items()}
        fetches = build(op, feeds)
        with tf.compat.v1.Session(graph=graph, config=config) as session:
            return session.run(fetches, {feeds[name]: inputs[name] for name in inputs})


def prove_graph(build, ours=True):
    prove(functools.partial(in_session, build), ours)


def prove_eager(build, ours=True):
    """Calls `build` eagerly, with an op's name and a dictionary of tensors."""
    prove(lambda op, inputs: build(op, {n: tf.constant(v) for n, v in inputs.items()}), ours)


# Places to put a node in. Each makes a function like `node` from one.


def in_function(build):
    """In a tf.function that knows no shapes."""

    def run(op, inputs):
        signature = {name: tf.TensorSpec(None, dtype) for name, dtype in types(op).items()}
        return tf.function(functools.partial(build, op), input_signature=[signature])(inputs)

    return run


def in_loop(build):
    """In the body of a while loop; the outputs are averaged over its rounds."""

    def run(op, inputs):
        names = output_names(op)

        def body(step, *totals):
            outputs = build(op, inputs)
            return [step + 1] + [total + outputs[name] for total, name in zip(totals, names)]

        shapes = [tf.TensorShape([])] + [tf.TensorShape(None) for _ in names]
        start = [tf.constant(0)] + [tf.constant(0.0) for _ in names]
        totals = tf.while_loop(lambda step, *_: step < ROUNDS, body, start, shapes)[1:]
        return {name: total / ROUNDS for name, total in zip(names, totals)}

    return run


def in_cond(build):
    """In the branch taken of a tf.cond whose predicate is not known before it runs."""

    def run(op, inputs):
        names = output_names(op)
        outputs = tf.cond(
            tf.reduce_sum(inputs["h_prev"]) < 1e9,
            lambda: [build(op, inputs)[name] for name in names],
            lambda: [tf.zeros(tf.shape(inputs["h_prev"])) for _ in names],
        )
        return dict(zip(names, outputs))

    return run


def in_map(build):
    """In tf.map_fn; the outputs are averaged over its rounds."""

    def run(op, inputs):
        names = output_names(op)
        results = tf.map_fn(
            lambda factor: tuple(factor * build(op, inputs)[name] for name in names),
            tf.constant([0.5, 1.0, 1.5]),
            dtype=(tf.float32,) * len(names),
        )
        return {name: tf.reduce_mean(result, axis=0) for name, result in zip(names, results)}

    return run


def output_names(op):
    return list(OPS[op].outputs)


def control_flow(version):
    """Runs a function with the control flow of TensorFlow 1 or 2, then restores the default."""
    switches = {"v1": "disable_control_flow_v2", "v2": "enable_control_flow_v2"}
    default = "v1" if tf.__version__.startswith("1.") else "v2"

    def decorate(function):
        @functools.wraps(function)
        def run():
            getattr(tf.compat.v1, switches[version])()
            try:
                return function()
            finally:
                getattr(tf.compat.v1, switches[default])()

        return run

    return decorate


# Graphs and sessions, in TensorFlow 1.15 and 2.


def session():
    prove_graph(node)


def session_without_optimizer():
    """Grappler's rewriting must not matter."""

    def call(op, inputs):
        config = tf.compat.v1.ConfigProto()
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        return in_session(node, op, inputs, config=config)

    prove(call)


def label():
    def build(op, inputs):
        with tf.compat.v1.get_default_graph()._kernel_label_map({op: "blockcell"}):
            return node(op, inputs)

    prove_graph(build)


def placed_on_a_cpu():
    def build(op, inputs):
        with tf.device("/device:CPU:0"):
            return node(op, inputs)

    prove_graph(build)


@control_flow("v1")
def loop_of_v1():
    prove_graph(in_loop(node))


@control_flow("v2")
def loop_of_v2():
    prove_graph(in_loop(node))


@control_flow("v1")
def loop_in_loop_of_v1():
    prove_graph(in_loop(in_loop(node)))


@control_flow("v1")
def cond_of_v1():
    prove_graph(in_cond(node))


@control_flow("v2")
def cond_of_v2():
    prove_graph(in_cond(node))


def map_fn():
    prove_graph(in_map(node))


def function_in_graph():
    prove_graph(in_function(node))


def function_in_function_in_graph():
    prove_graph(in_function(in_function(node)))


@control_flow("v1")
def function_in_loop_of_v1():
    prove_graph(in_loop(in_function(node)))


@control_flow("v2")
def function_in_loop_of_v2():
    prove_graph(in_loop(in_function(node)))


def loop_in_function_in_graph():
    prove_graph(in_function(in_loop(node)))


def dataset_in_graph():
    """In the function of a tf.data pipeline."""

    def call(op, inputs):
        with tf.Graph().as_default() as graph:
            feeds = {n: tf.compat.v1.placeholder(dtype) for n, dtype in types(op).items()}
            dataset = tf.data.Dataset.from_tensors(feeds).map(lambda at: node(op, at))
            iterator = tf.compat.v1.data.make_initializable_iterator(dataset)
            fetches = iterator.get_next()
            with tf.compat.v1.Session(graph=graph) as session:
                session.run(iterator.initializer, {feeds[n]: v for n, v in inputs.items()})
                return session.run(fetches)

    prove(call)


def _prove_file(load):
    """`load` restores an op's graph into the default one and its session."""

    def call(op, inputs):
        with tf.Graph().as_default() as graph, tf.compat.v1.Session(graph=graph) as session:
            load(op, session)
            fetches = {name: f"output_{name}:0" for name in output_names(op)}
            return session.run(fetches, {f"input_{n}:0": v for n, v in inputs.items()})

    prove(call)


def graph_def():
    def load(op, session):
        definition = tf.compat.v1.GraphDef()
        with open(path("graph_def", op), "rb") as file:
            definition.ParseFromString(file.read())
        tf.import_graph_def(definition, name="")

    _prove_file(load)


def meta_graph():
    _prove_file(lambda op, session: tf.compat.v1.train.import_meta_graph(path("meta_graph", op)))


def saved_model():
    def load(op, session):
        tf.compat.v1.saved_model.load(session, ["serve"], path("saved_model", op))

    _prove_file(load)


def several_sessions():
    """Threads with a session each, and threads that share one."""
    with tf.Graph().as_default() as graph:
        feeds = {
            op: {name: tf.compat.v1.placeholder(dtype) for name, dtype in types(op).items()}
            for op in STOCK
        }
        fetches = {op: node(op, feeds[op]) for op in STOCK}
    shared = tf.compat.v1.Session(graph=graph)

    def share(op, inputs):
        return shared.run(fetches[op], {feeds[op][name]: inputs[name] for name in inputs})

    in_threads([functools.partial(prove_graph, node)] * 3 + [functools.partial(prove, share)] * 3)


def in_threads(functions):
    failures = []

    def run(function):
        try:
            for _ in range(2):
                function()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=[function]) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def empty_shapes():
    """Stock kernels of 1.15 end the process where input_size or cell_size is 0."""
    for sizes in ((0, 2, 4), (3, 0, 4), (3, 2, 0), (0, 0, 0)):
        for op in STOCK:
            inputs = inputs_of(op, *sizes, **ATTRIBUTES[op])
            got = in_session(node, op, inputs)
            checks.assert_close(got, expected(op, inputs, **ATTRIBUTES[op]), 4e-6, op)


# TensorFlow 1.15 only.


def _defun(**options):
    from tensorflow.python.framework import function

    def build(op, inputs):
        names = list(inputs)

        @function.Defun(*types(op).values(), **options)
        def run(*values):
            outputs = node(op, dict(zip(names, values)))
            return [outputs[name] for name in output_names(op)]

        outputs = run(*[inputs[name] for name in names])
        return dict(zip(output_names(op), outputs))

    return build


def defun():
    prove_graph(_defun())


def defun_not_inlined():
    prove_graph(_defun(noinline=True))


@control_flow("v1")
def defun_in_loop():
    prove_graph(in_loop(_defun(noinline=True)))


def contrib_training():
    """Trains the cells of tf.contrib; returns losses, and the labels of the gradient ops."""
    return {
        "gru": _train(_dynamic(lambda: tf.contrib.rnn.GRUBlockCellV2(8)), GRU_CELL_GRAD),
        "lstm": _train(
            _dynamic(lambda: tf.contrib.rnn.LSTMBlockCell(8, use_peephole=True)), LSTM_CELL_GRAD
        ),
        "fused": _train(_fused, BLOCK_LSTM_GRAD),
    }


def _dynamic(make_cell):
    return lambda inputs: tf.nn.dynamic_rnn(make_cell(), inputs, dtype=tf.float32)[0]


def _fused(inputs):
    """`BlockLSTM`, which is time-major, on rows of different lengths."""
    cell = tf.contrib.rnn.LSTMBlockFusedCell(8, use_peephole=True)
    lengths = tf.constant([10, 3, 10, 7, 1, 9])
    outputs, _ = cell(tf.transpose(inputs, [1, 0, 2]), dtype=tf.float32, sequence_length=lengths)
    return tf.transpose(outputs, [1, 0, 2])


def _train(apply, op):
    with tf.Graph().as_default():
        tf.set_random_seed(5)
        random = np.random.RandomState(5)
        inputs = tf.constant(random.standard_normal([6, 10, 3]).astype("f"))
        targets = tf.constant(random.standard_normal([6, 10, 8]).astype("f"))
        loss = tf.reduce_mean(tf.square(apply(inputs) - targets))
        step = tf.train.AdamOptimizer(0.05).minimize(loss)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            options = tf.RunOptions(output_partition_graphs=True)
            metadata = tf.RunMetadata()
            session.run(step, options=options, run_metadata=metadata)
            losses = [session.run([loss, step])[0] for _ in range(20)]
    nodes = [node for graph in metadata.partition_graphs for node in graph.node if node.op == op]
    return {
        "losses": [float(value) for value in losses],
        "labels": [node.attr["_kernel"].s.decode() for node in nodes],
    }


# TensorFlow 2 only.


def eager_raw_ops():
    prove_eager(node)


def eager_raw_ops_of_v1():
    def build(op, inputs):
        return getattr(tf.compat.v1.raw_ops, op)(**inputs, **ATTRIBUTES[op])._asdict()

    prove_eager(build)


def eager_function():
    prove_eager(in_function(node))


def eager_function_in_function():
    prove_eager(in_function(in_function(node)))


def eager_loop_in_function():
    prove_eager(in_function(in_loop(node)))


def eager_cond_in_function():
    prove_eager(in_function(in_cond(node)))


def eager_map_fn():
    prove_eager(in_map(node))


def eager_label_in_function():
    def build(op, inputs):
        with tf.compat.v1.get_default_graph()._kernel_label_map({op: "blockcell"}):
            return node(op, inputs)

    prove_eager(in_function(build))


def eager_dataset():
    def build(op, inputs):
        dataset = tf.data.Dataset.from_tensors(inputs).map(lambda at: node(op, at))
        return next(iter(dataset))

    prove_eager(build)


def eager_threads():
    in_threads([functools.partial(prove_eager, in_function(node)), eager_raw_ops] * 2)


eager_bad_input = bad_calls.wrong_shapes
eager_bad_length = bad_calls.wrong_lengths


def saved_functions():
    prove_eager(lambda op, inputs: tf.saved_model.load(path("saved_functions", op)).run(inputs))


# With BLOCKCELL_OVERRIDE=0.


def unlabelled_is_stock():
    prove_graph(node, ours=False)
    prove_graph(in_function(node), ours=False)


def eager_unlabelled_is_stock():
    prove_eager(node, ours=False)
    prove_eager(in_function(node), ours=False)
