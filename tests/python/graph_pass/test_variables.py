"""Kernels keep packed copies of variables that nobody writes; a write is seen by the next call.

TensorFlow writes to a variable's buffer in place only where nobody else holds it, and a kernel that
keeps copies holds it.
"""

import time

import numpy as np
import pytest
import tensorflow as tf

import blockcell
from blockcell import op_table
from blockcell_tools.reference.inputs import forward_inputs
from helpers import kernels, ways

v1 = tf.compat.v1
raw = tf.raw_ops
NOTE = "_blockcell_constants"
TIME, BATCH, INPUT, CELL = 10, 3, 5, 40
INPUTS = forward_inputs("BlockLSTM", BATCH, INPUT, CELL, time=TIME, length=TIME, seed=3)
SHAPE = list(INPUTS["w"].shape)
SETTLING_SECONDS = 1.05


def gradient(seed=5):
    return (0.1 * np.random.RandomState(seed).randn(*SHAPE)).astype("float32")


def slot():
    return v1.Variable(np.full(SHAPE, 0.5, "float32"), use_resource=True).handle


# Each writes to a variable, by its handle.
WRITERS = {
    "AssignVariableOp": lambda w: raw.AssignVariableOp(resource=w, value=gradient()),
    "AssignAddVariableOp": lambda w: raw.AssignAddVariableOp(resource=w, value=gradient()),
    "AssignSubVariableOp": lambda w: raw.AssignSubVariableOp(resource=w, value=gradient()),
    "gradient descent": lambda w: raw.ResourceApplyGradientDescent(
        var=w, alpha=0.5, delta=gradient()
    ),
    "gradient descent, locked": lambda w: raw.ResourceApplyGradientDescent(
        var=w, alpha=0.5, delta=gradient(), use_locking=True
    ),
    "momentum": lambda w: raw.ResourceApplyMomentum(
        var=w, accum=slot(), lr=0.5, grad=gradient(), momentum=0.9
    ),
    "adam": lambda w: raw.ResourceApplyAdam(
        var=w,
        m=slot(),
        v=slot(),
        beta1_power=0.9,
        beta2_power=0.9,
        lr=0.5,
        beta1=0.9,
        beta2=0.9,
        epsilon=1e-3,
        grad=gradient(),
    ),  # fmt: skip
    "RMSprop": lambda w: raw.ResourceApplyRMSProp(
        var=w, ms=slot(), mom=slot(), lr=0.5, rho=0.9, momentum=0.9, epsilon=1e-3, grad=gradient()
    ),
    "adagrad, sparse": lambda w: raw.ResourceSparseApplyAdagrad(
        var=w, accum=slot(), lr=0.5, grad=gradient()[:2], indices=[0, 3]
    ),
    "scatter": lambda w: raw.ResourceScatterUpdate(
        resource=w, indices=[1, 4], updates=gradient()[:2]
    ),
    "scatter by coordinates": lambda w: raw.ResourceScatterNdAdd(
        ref=w, indices=[[1, 2], [4, 3]], updates=[1.0, 2.0]
    ),
    "slice": lambda w: raw.ResourceStridedSliceAssign(
        ref=w, begin=[0, 0], end=[2, 3], strides=[1, 1], value=gradient()[:2, :3]
    ),
}


class Served:
    """A session whose graph reads its weights from a variable, and can write to it."""

    def __init__(self, write=None, use_resource=True, reads_beside=False):
        with ways.our_graph() as graph:
            self.weights = v1.Variable(INPUTS["w"], use_resource=use_resource)
            read = self.weights.value() if use_resource else tf.identity(self.weights)
            self._h = kernels.call("BlockLSTM", {**INPUTS, "w": read})["h"]
            self._write = write and write(self.weights.handle)
            self._w = tf.identity(self.weights.read_value())
            self._fed = v1.placeholder(tf.float32, SHAPE)
            self._load = self.weights.assign(self._fed, read_value=False) if use_resource else None
            self._update = reads_beside and self.weights.assign_add(gradient())
            initializer = v1.global_variables_initializer()
        self._session = v1.Session(graph=graph)
        self._session.run(initializer)

    def h(self):
        return self._session.run(self._h)

    def weights_now(self):
        return self._session.run(self._w)

    def write(self):
        self._session.run(self._write)

    def load(self, value):
        self._session.run(self._load, {self._fed: value})

    def noted(self):
        """The inputs that the pass has noted."""
        metadata, options = v1.RunMetadata(), v1.RunOptions(output_partition_graphs=True)
        fetches = [self._h] + ([self._update] if self._update is not False else [])
        self._session.run(fetches, None, options, metadata)
        nodes = [node for graph in metadata.partition_graphs for node in graph.node]
        (ran,) = (node for node in nodes if node.op == "BlockLSTM")
        names, numbers = list(op_table.OPS[ran.op].inputs), ran.attr[NOTE].list.i[1:]
        inputs, constants = np.split(np.array(numbers), 2)
        return {names[at] for at, constant in zip(inputs, constants) if constant == 0}

    def close(self):
        self._session.close()


def want(weights):
    """The result with such weights, which nobody has seen before."""
    with ways.our_graph() as graph:
        fed = v1.placeholder(tf.float32, SHAPE)
        h = kernels.call("BlockLSTM", {**INPUTS, "w": fed})["h"]
    with v1.Session(graph=graph) as session:
        return session.run(h, {fed: weights})


def settle(*served):
    for _ in range(3):
        for one in served:
            one.h()
    time.sleep(SETTLING_SECONDS)


def kept():
    return blockcell.info()["kept_weight_bytes"]


def test_every_way_to_write():
    before = kept()
    served = {name: Served(write) for name, write in WRITERS.items()}
    settle(*served.values())
    first = want(INPUTS["w"])
    for one in served.values():
        np.testing.assert_array_equal(one.h(), first)
    each = (kept() - before) // len(served)
    assert each >= 4 * CELL * CELL * 4
    for name, one in served.items():
        for _ in range(2):
            one.write()
            weights = one.weights_now()
            got = one.h()
            assert np.abs(got - first).max() > 1e-4, name
            np.testing.assert_array_equal(got, want(weights), err_msg=name)
    for one in served.values():
        one.close()
    assert kept() == before


def test_a_variable_that_is_replaced_is_kept_again():
    write = WRITERS["AssignAddVariableOp"]
    one, before = Served(write), kept()
    settle(one)
    one.h()
    assert kept() > before
    one.write()
    weights = one.weights_now()
    np.testing.assert_array_equal(one.h(), want(weights))
    assert kept() == before
    for _ in range(10):
        one.h()
    time.sleep(SETTLING_SECONDS)
    np.testing.assert_array_equal(one.h(), want(weights))
    assert kept() > before


def test_memory_of_numpy_arrays():
    """A session gives a variable the memory of an array that it was fed."""
    memory = np.zeros(np.prod(SHAPE) + 16, np.float32)
    start = -memory.ctypes.data % 64 // 4
    fed = memory[start : start + np.prod(SHAPE)].reshape(SHAPE)
    fed[:] = INPUTS["w"]
    one = Served()
    one.load(fed)
    settle(one)
    one.h()
    fed *= 2
    np.testing.assert_array_equal(one.h(), want(one.weights_now()))


def test_what_is_noted():
    assert Served().noted() == {"w"}
    assert not Served(reads_beside=True).noted()
    assert not Served(use_resource=False).noted()


@pytest.mark.skipif(ways.TF1, reason="functions of TensorFlow 2")
def test_in_functions():
    """Two functions share the copies of a variable; training in another one is seen."""
    weights = tf.Variable(0.1 * tf.random.stateless_normal(SHAPE, [1, 2]))

    def make():
        @tf.function
        def run():
            with kernels.labelled():
                return kernels.call("BlockLSTM", {**INPUTS, "w": weights})["h"]

        return run

    one, other, before = make(), make(), kept()
    for _ in range(3):
        one(), other()
    time.sleep(SETTLING_SECONDS)
    one()
    size = kept() - before
    other()
    assert size == kept() - before > 0
    for _ in range(5):
        weights.assign_add(gradient())
        np.testing.assert_array_equal(one(), want(weights.numpy()))
        np.testing.assert_array_equal(other(), want(weights.numpy()))
