"""Kernels pack weights that are constants once; nobody sees that but by the time.

The graph pass notes which inputs of a node are constants, in an attribute. A kernel that was told
so wrongly would compute with weights of an earlier call.
"""

import numpy as np
import pytest
import tensorflow as tf

import blockcell
from blockcell import op_table
from blockcell_tools.reference.inputs import forward_inputs
from helpers import kernels, ways

v1 = tf.compat.v1
NOTE = "_blockcell_constants"
WEIGHTS = {"BlockLSTM": ["w"], "BlockLSTMV2": ["w"], "BlockGRU": ["w_ru", "w_c"]}
TIME, BATCH, INPUT, CELL = 10, 3, 5, 40


def inputs_of(op, batch=BATCH, dtype=np.float32, seed=3):
    return forward_inputs(op, batch, INPUT, CELL, time=TIME, dtype=dtype, length=TIME, seed=seed)


class Net:
    """A node in a session, with weights that `make` made: constants, or whatever."""

    def __init__(self, op, make, dtype=np.float32, config=None):
        inputs = inputs_of(op, dtype=dtype)
        with ways.our_graph() as graph:
            tensors = {name: v1.placeholder(value.dtype) for name, value in inputs.items()}
            self.weights = {name: make(inputs[name]) for name in WEIGHTS[op]}
            self._feeds = {k: v for k, v in tensors.items() if k not in self.weights}
            tensors.update(self.weights)
            self._h = kernels.call(op, tensors)["h"]
            initializer = v1.global_variables_initializer()
        self.op = op
        self._session = v1.Session(graph=graph, config=config)
        self._session.run(initializer)

    def h(self, inputs, weights=None):
        """The output, with weights that are fed; and what the pass noted."""
        feeds = {tensor: inputs[name] for name, tensor in self._feeds.items()}
        feeds.update((self.weights[name], value) for name, value in (weights or {}).items())
        metadata, options = v1.RunMetadata(), v1.RunOptions(output_partition_graphs=True)
        h = self._session.run(self._h, feeds, options, metadata)
        nodes = [node for graph in metadata.partition_graphs for node in graph.node]
        (self.ran,) = (node for node in nodes if node.op == self.op)
        return h, self._noted()

    def bring_back(self, note):
        """Gives the node a note, as a graph has it that was saved after the pass."""
        self._h.op._set_attr(NOTE, note)

    def _noted(self):
        names, numbers = list(op_table.OPS[self.op].inputs), self.ran.attr[NOTE].list.i[1:]
        return sorted(names[number] for number in numbers[: len(numbers) // 2])


def constant(value):
    return tf.constant(value)


def read_constant(value):
    """As a frozen variable is read."""
    return tf.identity(tf.identity(tf.constant(value)))


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("make", [constant, read_constant])
@pytest.mark.parametrize("op", [op for op in WEIGHTS if op in blockcell.info()["ops"]])
def test_same_bits(op, make, dtype):
    net, fed = Net(op, make, dtype), Net(op, lambda value: v1.placeholder(value.dtype), dtype)
    weights = {name: inputs_of(op, dtype=dtype)[name] for name in WEIGHTS[op]}
    for batch in (BATCH, 1, 7, 20, BATCH):
        inputs = inputs_of(op, batch, dtype)
        (got, noted), (want, nothing) = net.h(inputs), fed.h(inputs, weights)
        assert noted == sorted(WEIGHTS[op]) and not nothing
        np.testing.assert_array_equal(got, want)


def test_a_constant_that_is_fed_is_none():
    net, inputs = Net("BlockLSTM", constant), inputs_of("BlockLSTM")
    first, noted = net.h(inputs)
    assert noted == ["w"]
    for factor in (2, 3):
        got, noted = net.h(inputs, {"w": factor * inputs["w"]})
        assert not noted and np.abs(got - first).max() > 1e-3
    np.testing.assert_array_equal(net.h(inputs)[0], first)


def test_a_reference_variable_is_none():
    net = Net("BlockLSTM", lambda value: v1.Variable(value, use_resource=False).value())
    assert not net.h(inputs_of("BlockLSTM"))[1]


def test_a_constant_on_another_device_is_none():
    def make(value):
        with tf.device("CPU:1"):
            return tf.constant(value)

    net = Net("BlockLSTM", make, config=v1.ConfigProto(device_count={"CPU": 2}))
    assert not net.h(inputs_of("BlockLSTM"))[1]


def test_a_session_that_wants_no_rewrites_has_none():
    config = v1.ConfigProto()
    unwanted = config.graph_options.rewrite_options.custom_optimizers.add(name="blockcell")
    unwanted.parameter_map["rewrite"].b = False
    assert not Net("BlockLSTM", constant, config=config).h(inputs_of("BlockLSTM"))[1]


@pytest.mark.parametrize("mark", ["this process", "another"])
def test_a_graph_that_comes_back(mark):
    """With the note of an earlier run, and weights that are no constants any more."""
    net, inputs = Net("BlockLSTM", constant), inputs_of("BlockLSTM")
    net.h(inputs)
    note = net.ran.attr[NOTE]
    if mark == "another":
        note.list.i[0] += 1
    fed = Net("BlockLSTM", lambda value: v1.placeholder(value.dtype))
    fed.bring_back(note)
    for factor in (1, 2):
        weights = {"w": factor * inputs["w"]}
        got, noted = fed.h(inputs, weights)
        assert not noted
        want = Net("BlockLSTM", lambda _, w=weights["w"]: tf.constant(w)).h(inputs)[0]
        np.testing.assert_array_equal(got, want)


@pytest.mark.skipif(ways.TF1, reason="functions of TensorFlow 2")
def test_in_a_function():
    inputs = {name: tf.constant(value) for name, value in inputs_of("BlockLSTMV2").items()}
    want = kernels.run("BlockLSTMV2", {name: value.numpy() for name, value in inputs.items()})["h"]
    weights = inputs["w"].numpy()

    @tf.function
    def run(inputs):
        with kernels.labelled():
            return kernels.call("BlockLSTMV2", dict(inputs, w=tf.constant(weights)))["h"]

    for _ in range(3):
        np.testing.assert_array_equal(run(inputs), want)
