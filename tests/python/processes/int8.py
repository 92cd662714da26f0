"""Constant weights in int8, for `test_int8`."""

import numpy as np
import tensorflow as tf

import blockcell
from blockcell_tools import cudnn_calls, labelled_calls
from blockcell_tools.reference import cudnn, cudnn_inputs
from blockcell_tools.reference.inputs import accuracy, inputs_of, scaled_error

SIZES = dict(time=12, batch=9, input_size=40, cell_size=65)
WEIGHTS = {"BlockLSTM": ["w"], "BlockLSTMV2": ["w"], "BlockGRU": ["w_ru", "w_c"]}


def chosen():
    """What is told of the choice."""
    blockcell.load()
    return blockcell.info()["weights"]


def given():
    """The same, where arguments choose; and what other arguments say then."""
    blockcell.load(weights="int8", keep_x="float32")
    blockcell.load(weights="int8", keep_x="float32")
    said = [blockcell.info()["weights"]]
    for error, arguments in (
        (blockcell.LibraryError, dict(weights="int8")),
        (blockcell.LibraryError, dict(weights="float32")),
        (ValueError, dict(weights="int4")),
        (ValueError, dict(keep_x="float32")),
        (ValueError, dict(weights="int8", keep_x="int8")),
    ):
        try:
            blockcell.load(**arguments)
        except error as found:
            said.append(str(found))
    return said


def _run(op, inputs, make=tf.constant, **attributes):
    """H of a graph whose weights `make` made."""
    with tf.Graph().as_default() as graph, labelled_calls.labelled():
        tensors = {name: tf.constant(value) for name, value in inputs.items()}
        tensors["x"] = tf.compat.v1.placeholder(np.float32, name="x")
        tensors.update((name, make(inputs[name])) for name in WEIGHTS[op])
        outputs = labelled_calls.call(op, tensors, **attributes)
        initializer = tf.compat.v1.global_variables_initializer()
    with tf.compat.v1.Session(graph=graph) as session:
        session.run(initializer)
        return [session.run(outputs, {"x:0": inputs["x"]}) for _ in range(2)]


def _variable(value):
    return tf.compat.v1.Variable(value, use_resource=True).value()


def _runs(op):
    return blockcell.info()["runs_in_int8"].get(op, 0)


def errors():
    """What comes of each op.

    The worst errors with constants and with what may change, whether variables give the bits of
    constants, and what ran in int8: of constants, of variables, and of what may change.
    """
    blockcell.load()
    found = {}
    for op in [op for op in WEIGHTS if op in blockcell.info()["ops"]]:
        inputs = inputs_of(op, **SIZES, dtype=np.float32, seed=1)
        first, again = _run(op, inputs)
        count = _runs(op)
        variables = _run(op, inputs, _variable)
        of_variables = _runs(op) - count
        fed, _ = _run(op, inputs, lambda w: tf.compat.v1.placeholder_with_default(w, w.shape))
        worst = [
            max(one.error for one in accuracy(op, inputs, got, most=1.0)) for got in (first, fed)
        ]
        same = all(
            np.array_equal(first[name], other[name])
            for other in (again, *variables)
            for name in first
        )
        found[op] = [*worst, same, count, of_variables, _runs(op) - count - of_variables]
    return found


def of_threads():
    """Whether results are the same bit for bit with one thread and with two."""
    blockcell.load()
    inputs = inputs_of("BlockLSTMV2", 20, 23, 40, 70, dtype=np.float32, seed=1)
    results = []
    for threads in (1, 2):
        config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=threads)
        with tf.Graph().as_default() as graph, labelled_calls.labelled():
            tensors = {name: tf.constant(value) for name, value in inputs.items()}
            tensors["x"] = tf.compat.v1.placeholder(np.float32, name="x")
            h = labelled_calls.call("BlockLSTMV2", tensors)["h"]
        with tf.compat.v1.Session(graph=graph, config=config) as session:
            results.append(session.run(h, {"x:0": inputs["x"]}))
    return bool(np.array_equal(*results)) and _runs("BlockLSTMV2") == 2


def refused():
    """What a gradient says."""
    blockcell.load()
    inputs = inputs_of("BlockLSTMGrad", **SIZES, dtype=np.float32, seed=1)
    try:
        labelled_calls.run("BlockLSTMGrad", inputs, use_peephole=False)
    except tf.errors.InvalidArgumentError as error:
        return str(error)


def of_a_node():
    """Whether a node's attribute decides for it alone, and what one says that has none such."""
    blockcell.load()
    inputs = inputs_of("BlockLSTMV2", **SIZES, dtype=np.float32, seed=1)
    results = []
    for weights in (None, "int8", "int4"):
        with tf.Graph().as_default() as graph, labelled_calls.labelled():
            tensors = {name: tf.constant(value) for name, value in inputs.items()}
            tensors["x"] = tf.compat.v1.placeholder(np.float32, name="x")
            h = labelled_calls.call("BlockLSTMV2", tensors)["h"]
            if weights:
                value = tf.compat.v1.AttrValue(s=weights.encode())
                h.op._set_attr("_blockcell_weights", value)
        with tf.compat.v1.Session(graph=graph) as session:
            try:
                results.append(session.run(h, {"x:0": inputs["x"]}))
            except tf.errors.InvalidArgumentError as error:
                results.append(str(error))
    return [not np.array_equal(*results[:2]), _runs("BlockLSTMV2"), results[2]]


def noted_errors():
    """What is noted of two nodes in two calls, the error of the first, and what follows."""
    blockcell.load(weights="int8")
    inputs = inputs_of("BlockLSTMV2", **SIZES, dtype=np.float32, seed=1)
    with tf.Graph().as_default() as graph, labelled_calls.labelled():
        tensors = {name: tf.constant(value) for name, value in inputs.items()}
        x = tf.compat.v1.placeholder(np.float32, name="x")
        with tf.name_scope("constant"):
            constant = labelled_calls.call("BlockLSTMV2", {**tensors, "x": x})["h"]
        with tf.name_scope("fed"):
            fed = labelled_calls.call(
                "BlockLSTMV2",
                {**tensors, "x": x, "w": tf.compat.v1.placeholder(np.float32, name="w")},
            )["h"]
    with tf.compat.v1.Session(graph=graph) as session:
        feeds = {"x:0": inputs["x"], "fed/w:0": inputs["w"]}
        with blockcell.int8_errors() as noted:
            for _ in range(2):
                got, want = session.run([constant, fed], feeds)
        again = session.run(constant, feeds)
    after = blockcell.info()["int8_errors"]
    return [noted, _error(got, want), bool(np.array_equal(again, got)), after == noted]


def of_a_loop():
    """Of a loop that the passes make a layer of: the error, and what ran in int8."""
    blockcell.load()
    random = np.random.RandomState(0)
    time, batch, width, cells = 20, 6, 40, 64
    x = random.uniform(-1, 1, (batch, time, width)).astype(np.float32)
    kernel = random.uniform(-0.2, 0.2, (width + cells, 4 * cells)).astype(np.float32)

    def step(t, states, outputs):
        c, h = states
        joined = tf.concat([series.read(t), h], 1)
        gates = tf.nn.bias_add(tf.matmul(joined, tf.constant(kernel)), tf.zeros([4 * cells]))
        i, j, f, o = tf.split(gates, 4, 1)
        c = tf.sigmoid(f + 1.0) * c + tf.sigmoid(i) * tf.tanh(j)
        h = tf.sigmoid(o) * tf.tanh(c)
        return t + 1, (c, h), outputs.write(t, h)

    with tf.Graph().as_default() as graph:
        feed = tf.compat.v1.placeholder(np.float32, (None, time, width))
        series = tf.TensorArray(np.float32, time).unstack(tf.transpose(feed, [1, 0, 2]))
        zeros = tf.zeros([tf.shape(feed)[0], cells])
        _, _, outputs = tf.while_loop(
            lambda t, *_: t < time,
            step,
            (0, (zeros, zeros), tf.TensorArray(np.float32, time)),
        )
        h = outputs.stack()
    with tf.compat.v1.Session(graph=graph) as session:
        got = session.run(h, {feed: x})
    want, c, h = [], np.zeros((batch, cells)), np.zeros((batch, cells))
    for t in range(time):
        i, j, f, o = np.split(np.concatenate([x[:, t], h], 1) @ kernel.astype(np.float64), 4, 1)
        i, f, o = (1 / (1 + np.exp(-gate)) for gate in (i, f + 1, o))
        c = f * c + i * np.tanh(j)
        h = o * np.tanh(c)
        want.append(h)
    error = np.abs(got - np.stack(want)).max() / np.abs(want).max()
    return [float(error), blockcell.info()["runs_in_int8"]]


def of_keras():
    """What comes of a Keras model.

    The errors before and after a write to its weights, what ran, and what training says.
    """
    blockcell.load(weights="int8")
    layers = tf.keras.layers
    found = {}
    for layer in (layers.LSTM, layers.GRU):
        model = tf.keras.Sequential([layers.Input((20, 40)), layer(64, return_sequences=True)])
        x = np.random.RandomState(0).uniform(-1, 1, (6, 20, 40)).astype(np.float32)
        want = model(x).numpy()  # Eager ops have no graph, and weights that may change.
        before = sum(blockcell.info()["runs_in_int8"].values())
        blockcell.keras.enable(model)
        errors = [_error(model.predict(x, verbose=0), want)]
        model.set_weights([0.5 * weights for weights in model.get_weights()])
        got = model.predict(x, verbose=0)
        blockcell.keras.disable()
        errors.append(_error(got, model(x).numpy()))
        ran = sum(blockcell.info()["runs_in_int8"].values()) - before
        blockcell.keras.enable(model)
        model.compile("sgd", "mse")
        try:
            model.fit(x, x[:, :, :1], verbose=0)
            said = "nothing"
        except tf.errors.OpError as error:
            said = str(error)
        blockcell.keras.disable()
        found[layer.__name__] = [errors, ran, said]
    return found


NETWORK = cudnn.Network("lstm", 64, 40, num_layers=2, directions=2)


def _cudnn_graph(inputs, version, params, is_training=False, network=NETWORK):
    """The output of a network in a new graph whose parameters `params` made."""
    tensors = {name: tf.constant(value) for name, value in inputs.items()}
    tensors["input"] = tf.compat.v1.placeholder(np.float32, name="input")
    tensors["params"] = params(inputs["params"])
    attributes = dict(network.attributes, is_training=is_training)
    return cudnn_calls.forward_op(version, tensors, **attributes)


def _cudnn_session(inputs, version, params, **options):
    with tf.Graph().as_default() as graph:
        outputs = _cudnn_graph(inputs, version, params, **options)
        initializer = tf.compat.v1.global_variables_initializer()
    session = tf.compat.v1.Session(graph=graph)
    session.run(initializer)
    return session, outputs["output"]


def of_cudnn():
    """What comes of each of cuDNN's forward ops, as of `errors`."""
    blockcell.load()
    found = {}
    for version in cudnn_inputs.VERSIONS:
        for mode in cudnn.GATES:
            network = NETWORK._replace(rnn_mode=mode)
            op = "CudnnRNN" + cudnn_inputs.suffix(version)
            inputs = cudnn_inputs.inputs_of(network, 12, 9)
            results, counts = [], [_runs(op)]
            for params in (tf.constant, _variable, _fed):
                session, output = _cudnn_session(inputs, version, params, network=network)
                with session:
                    feed = {"input:0": inputs["input"]}
                    results += [session.run(output, feed) for _ in range(2)]
                counts.append(_runs(op))
            want = cudnn_inputs.expected(network, inputs)["output"]
            worst = [float(scaled_error(results[n], want)) for n in (0, 4)]
            same = all(np.array_equal(results[0], other) for other in results[1:4])
            ran = [int(count) for count in np.diff(counts)]
            found[f"{op} {mode}"] = [*worst, same, *ran]
    return found


def _fed(value):
    return tf.compat.v1.placeholder_with_default(value, value.shape)


def of_a_session():
    """Of a session in which the same parameters are a constant in some steps and fed in others.

    For either order of the steps: whether each constant gives the same bits, and the errors of the
    constant and of other parameters that are fed.
    """
    blockcell.load()
    inputs = cudnn_inputs.inputs_of(NETWORK, 12, 9)
    others = dict(inputs, params=-inputs["params"])
    wants = [cudnn_inputs.expected(NETWORK, one)["output"] for one in (inputs, others)]
    found, first = [], None
    for order in ("constant fed constant", "fed constant fed"):
        session, output = _cudnn_session(inputs, 3, lambda value: tf.constant(value, name="w"))
        with session:
            feed = {"input:0": inputs["input"]}
            feeds = {"constant": feed, "fed": dict(feed, **{"w:0": others["params"]})}
            results = [(step, session.run(output, feeds[step])) for step in order.split()]
        constants = [result for step, result in results if step == "constant"]
        first = constants[0] if first is None else first
        errors = [
            float(max(scaled_error(result, want) for step, result in results if step == kind))
            for kind, want in zip(feeds, wants)
        ]
        found.append([all(np.array_equal(first, one) for one in constants), *errors])
    return found


def of_training():
    """How often a network that trains ran in int8, its error, and what its gradient says."""
    blockcell.load()
    inputs = cudnn_inputs.inputs_of(NETWORK, 12, 9)
    session, output = _cudnn_session(inputs, 3, tf.constant, is_training=True)
    with session:
        got = session.run(output, {"input:0": inputs["input"]})
    error = scaled_error(got, cudnn_inputs.expected(NETWORK, inputs)["output"])
    try:
        cudnn_calls.run(NETWORK, inputs, constants=["params"])
        said = "nothing"
    except tf.errors.InvalidArgumentError as raised:
        said = str(raised)
    return [_runs("CudnnRNNV3"), float(error), said]


def of_a_function():
    """Of a `tf.function` whose parameters are a constant: the error, and how often it ran."""
    blockcell.load()
    inputs = cudnn_inputs.inputs_of(NETWORK, 12, 9)

    @tf.function(input_signature=[tf.TensorSpec([None, None, 40])])
    def function(x):
        tensors = {name: tf.constant(value) for name, value in inputs.items()}
        attributes = dict(NETWORK.attributes, is_training=False)
        return cudnn_calls.forward_op(3, dict(tensors, input=x), **attributes)["output"]

    got = [function(tf.constant(inputs["input"])).numpy() for _ in range(2)]
    want = cudnn_inputs.expected(NETWORK, inputs)["output"]
    return [float(scaled_error(got[0], want)), bool(np.array_equal(*got)), _runs("CudnnRNNV3")]


def noted_errors_of_cudnn():
    """What is noted of a network, and its error."""
    blockcell.load(weights="int8")
    inputs = cudnn_inputs.inputs_of(NETWORK, 12, 9)
    session, output = _cudnn_session(inputs, 3, tf.constant)
    with session, blockcell.int8_errors() as noted:
        got = session.run(output, {"input:0": inputs["input"]})
    return [noted, _error(got, cudnn_inputs.expected(NETWORK, inputs)["output"])]


def _error(got, want):
    return float(np.abs(got - want).max() / np.abs(want).max())
