"""Training steps that are saved with the library, and run without it, for `test_saved_training`.

Saving and loading happen in processes of their own. `BLOCKCELL_TEST_MODELS` names the folder.
"""

import functools
import os

import numpy as np
import tensorflow as tf

import blockcell
from rewrite import BATCH, CELL, CELLS, INPUT, STEPS

RATE = 0.1
LSTM_SHAPES = CELLS["lstm"][2]
TF1 = tf.__version__.startswith("1.")
v1 = tf.compat.v1


def prepare():
    if os.environ["BLOCKCELL_TEST_LOAD"] == "1":
        blockcell.load()


def cells(name, loop, x, parameters):
    """The states after all steps of a cell, one after the other or in a loop."""
    step, count, _ = CELLS[name]
    states = (tf.zeros([tf.shape(x)[0], CELL]),) * count
    if loop:
        return tf.while_loop(
            lambda t, *_: t < STEPS,
            lambda t, *states: (t + 1,) + tuple(step(x[:, t], states, parameters)),
            (tf.constant(0),) + states,
            (tf.TensorShape([]),) + (tf.TensorShape([None, CELL]),) * count,
        )[1:]
    for t in range(STEPS):
        states = step(x[:, t], states, parameters)
    return states


def sequence(op, x, parameters):
    """What an op for the whole sequence returns."""
    w, wci, wcf, wco, b = parameters
    zeros = tf.zeros([tf.shape(x)[0], CELL])
    outputs = getattr(tf.raw_ops, op)(
        seq_len_max=tf.constant(STEPS, tf.int64),
        x=tf.transpose(x, [1, 0, 2]),
        cs_prev=zeros,
        h_prev=zeros,
        w=w,
        wci=wci,
        wcf=wcf,
        wco=wco,
        b=b,
        use_peephole=True,
    )
    return outputs.h, outputs.cs


# The network, and the shapes of its parameters.
NETWORKS = {
    f"{cell}_{'loop' if loop else 'unrolled'}": (functools.partial(cells, cell, loop), shapes)
    for cell, (_, _, shapes) in CELLS.items()
    for loop in (True, False)
}
for _op in ("BlockLSTM", "BlockLSTMV2"):
    NETWORKS[_op] = functools.partial(sequence, _op), LSTM_SHAPES


def values(*shape):
    return np.random.RandomState(sum(shape)).uniform(-0.5, 0.5, shape).astype(np.float32)


X = values(BATCH, STEPS, INPUT)


def loss_of(network, order, gradients, x, parameters):
    """The loss; with order 2 also how steep that is, so that second derivatives are needed."""
    loss = tf.add_n([tf.reduce_sum(tf.sin(state)) for state in network(x, parameters)])
    if order == 2:
        (d_x,) = gradients(loss, [x])
        loss += tf.reduce_sum(d_x * d_x)
    return loss


def folder(kind, name, order):
    return os.path.join(os.environ["BLOCKCELL_TEST_MODELS"], f"{kind}_{name}_{order}")


class Model(tf.Module):
    """Parameters, and a function that trains them."""

    def __init__(self, name, order):
        super().__init__()
        network, shapes = NETWORKS[name]
        self.parameters = [tf.Variable(values(*shape)) for shape in shapes]

        def train(x):
            with tf.GradientTape() as tape, tf.GradientTape() as inner:
                inner.watch(x)
                loss = loss_of(network, order, inner.gradient, x, list(self.parameters))
            for variable, gradient in zip(
                self.parameters, tape.gradient(loss, list(self.parameters))
            ):
                variable.assign_sub(RATE * gradient)
            return loss

        self.train = tf.function(train, input_signature=[tf.TensorSpec([None, STEPS, INPUT])])


def save_function(name, order):
    tf.saved_model.save(Model(name, order), folder("function", name, order))


def train_function(name, order):
    """The losses of three steps, from the saved parameters on."""
    model = tf.saved_model.load(folder("function", name, order))
    return [float(model.train(tf.constant(X))) for _ in range(3)]


def save_graph(name, order):
    network, shapes = NETWORKS[name]
    with tf.Graph().as_default():
        x = v1.placeholder(tf.float32, [None, STEPS, INPUT], name="x")
        parameters = [v1.Variable(values(*shape)) for shape in shapes]
        tensors = [tf.identity(parameter) for parameter in parameters]
        loss = loss_of(network, order, tf.gradients, x, tensors)
        gradients = tf.gradients(loss, tensors)
        with tf.control_dependencies(gradients + [loss]):  # Reading a reference is no copy.
            updates = [
                v1.assign_sub(variable, RATE * gradient).op
                for variable, gradient in zip(parameters, gradients)
            ]
        with tf.control_dependencies(updates):
            tf.identity(loss, name="loss")
        v1.global_variables_initializer()
        v1.train.export_meta_graph(folder("graph", name, order))


def train_graph(name, order):
    with tf.Graph().as_default(), v1.Session() as session:
        v1.train.import_meta_graph(folder("graph", name, order))
        session.run("init")
        return [float(session.run("loss:0", {"x:0": X})) for _ in range(3)]


def registered():
    """Whether this process has the library."""
    from tensorflow.python.framework import op_def_registry

    if hasattr(op_def_registry, "get"):
        return op_def_registry.get("BlockGRU") is not None
    return "BlockGRU" in op_def_registry.get_registered_ops()


if TF1:
    # The ops of the cells are tf.contrib's.
    from tensorflow.contrib import rnn  # noqa: F401


def _kinds(name, order):
    """Second derivatives are saved in functions where there are any."""
    if TF1:
        return [] if order == 2 and name.endswith("loop") else ["graph"]  # TensorFlow 1 cannot.
    return ["function"] if order == 2 else ["function", "graph"]


CASES = [
    f"{kind}_{name}_{order}"
    for name in NETWORKS
    for order in (1, 2)
    for kind in _kinds(name, order)
]
for _case in CASES:
    _kind, _rest = _case.split("_", 1)
    _arguments = (_rest[:-2], int(_rest[-1]))
    for _do in ("save", "train"):
        globals()[f"{_do}_{_case}"] = functools.partial(globals()[f"{_do}_{_kind}"], *_arguments)
