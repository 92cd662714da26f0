"""TensorFlow's own gradients of the cuDNN ops call the Backprop ops, and are right."""

import numpy as np
import pytest
import tensorflow as tf

from blockcell_tools.reference import cudnn as oracle
from blockcell_tools.reference.cudnn import Network
from blockcell_tools.reference.inputs import scaled_error
from helpers import cudnn

TF1 = tf.__version__.startswith("1.")
DIFFERENTIATED = cudnn.FORWARD_INPUTS[:4]
NETWORK = Network("lstm", 6, 3, 2, 2)


def loss_of(outputs, inputs, names=cudnn.FORWARD):
    return tf.add_n([tf.reduce_sum(outputs[n] * inputs[n + "_backprop"]) for n in names])


def arguments(network, inputs):
    return {name: tf.constant(inputs[name]) for name in cudnn.FORWARD_INPUTS}, network.attributes


def check(network, inputs, got, what):
    want = oracle.backward(network, **inputs)
    names = [n for n in DIFFERENTIATED if network.has_c or n != "input_c"]
    for name, value in zip(DIFFERENTIATED, got):
        if name in names:
            error = scaled_error(value, want[name + "_backprop"])
            assert error <= cudnn.LIMIT[np.float32], f"{what} {name}: scaled error {error:.3g}"


@pytest.mark.parametrize("version", cudnn.VERSIONS)
@pytest.mark.parametrize("mode", cudnn.MODES)
def test_gradients_in_a_graph(mode, version):
    network = NETWORK._replace(rnn_mode=mode)
    inputs = cudnn.inputs_of(network, 4, 3, lengths="random" if version == 3 else None)
    with tf.Graph().as_default() as graph:
        tensors, attributes = arguments(network, inputs)
        outputs = cudnn.forward_op(version, tensors, **attributes)
        gradients = tf.gradients(
            loss_of(outputs, inputs), [tensors[name] for name in DIFFERENTIATED]
        )
        ops = {node.type for node in graph.get_operations()}
    assert "CudnnRNNBackprop" + cudnn.suffix(version) in ops
    with tf.compat.v1.Session(graph=graph) as session:
        check(network, inputs, session.run(gradients), f"{mode} V{version}")


@pytest.mark.skipif(TF1, reason="the eager mode of TensorFlow 1.15 does not run loaded kernels")
@pytest.mark.parametrize("in_function", [False, True])
@pytest.mark.parametrize("version", cudnn.VERSIONS)
def test_gradient_tape(version, in_function):
    inputs = cudnn.inputs_of(NETWORK, 4, 3, lengths="random" if version == 3 else None)

    def gradients():
        tensors, attributes = arguments(NETWORK, inputs)
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            loss = loss_of(cudnn.forward_op(version, tensors, **attributes), inputs)
        return tape.gradient(loss, [tensors[name] for name in DIFFERENTIATED])

    got = (tf.function(gradients) if in_function else gradients)()
    check(NETWORK, inputs, [value.numpy() for value in got], f"V{version}")


@pytest.mark.parametrize("output", cudnn.FORWARD)
def test_a_gradient_that_arrives_at_one_output_alone(output):
    """TensorFlow hands zeros for the others."""
    inputs = cudnn.inputs_of(NETWORK, 4, 3)
    for name in cudnn.FORWARD:
        if name != output:
            inputs[name + "_backprop"][:] = 0
    with tf.Graph().as_default() as graph:
        tensors, attributes = arguments(NETWORK, inputs)
        outputs = cudnn.forward_op(2, tensors, **attributes)
        loss = loss_of(outputs, inputs, [output])
        gradients = tf.gradients(loss, [tensors[name] for name in DIFFERENTIATED])
    with tf.compat.v1.Session(graph=graph) as session:
        check(NETWORK, inputs, session.run(gradients), output)


def test_inference_has_no_gradients():
    inputs = cudnn.inputs_of(NETWORK, 4, 3)
    with tf.Graph().as_default():
        tensors, attributes = arguments(NETWORK, inputs)
        outputs = cudnn.forward_op(3, tensors, is_training=False, **attributes)
        with pytest.raises(ValueError, match="is_training must be set to True"):
            tf.gradients(loss_of(outputs, inputs), tensors["input"])


@pytest.mark.parametrize("mode", cudnn.MODES)
def test_finite_differences(mode):
    """The ops alone: the loss moves along the gradient as the gradient says."""
    network = NETWORK._replace(rnn_mode=mode)
    inputs = cudnn.inputs_of(network, 4, 3, lengths="random")
    got = cudnn.run(network, inputs)
    names = [n for n in DIFFERENTIATED if network.has_c or n != "input_c"]
    for name in names:
        slope = cudnn.slope_along(network, inputs, name, got[name + "_backprop"])
        assert slope == pytest.approx(1, abs=5e-3), name
