"""The oracle of the cuDNN ops by finite differences; its buffer against Keras and contrib."""

import numpy as np
import pytest
import tensorflow as tf

from blockcell_tools.reference import cudnn
from blockcell_tools.reference.cudnn import Network
from helpers import checks, keras_cudnn, torch_values
from helpers import cudnn as ops
from helpers.numeric import numeric_gradients

TF1 = tf.__version__.startswith("1.")
NETWORKS = [
    Network(mode, 3, 3 if skip else 2, layers, directions, skip)
    for mode in cudnn.GATES
    for layers, directions, skip in [(1, 1, False), (2, 2, False), (2, 1, True), (1, 2, True)]
]
NETWORKS.append(Network("lstm", 3, 2, 2, 2, num_proj=2))


def name(network):
    suffix = "-skip" if network.skip_input else "-projected" if network.num_proj else ""
    return f"{network.rnn_mode}-{network.num_layers}x{network.directions}{suffix}"


@pytest.mark.once
@pytest.mark.parametrize("network", NETWORKS, ids=name)
def test_backward_is_the_derivative_of_forward(network):
    time, batch = 3, 4
    inputs = ops.inputs_of(network, time, batch, np.float64, lengths=[3, 0, 1, 2])
    random = np.random.RandomState(5)
    masks = [
        random.choice([0.0, 1.5], (time, batch, network.directions * network.outputs))
        for _ in range(network.num_layers - 1)
    ]
    names = [n for n in ops.FORWARD_INPUTS if network.has_c or n != "input_c"]
    incoming = {n: inputs[n + "_backprop"] for n in ops.FORWARD[: 3 if network.has_c else 2]}

    def cell(**arguments):
        arguments.setdefault("input_c", None)
        return cudnn.forward(network, masks=masks, **arguments)

    want = numeric_gradients(cell, {n: inputs[n] for n in names}, incoming)
    got = cudnn.backward(network, masks=masks, **inputs)
    checks.assert_close(got, {n + "_backprop": value for n, value in want.items()}, 1e-7)


def test_batch_major_swaps_axes():
    network = Network("gru", 3, 2, 2, 2)
    inputs = ops.inputs_of(network, 4, 3, lengths="random")
    swapped = {
        n: v.swapaxes(0, 1) if np.ndim(v) > 1 and n != "params" else v for n, v in inputs.items()
    }
    got = ops.expected(network, swapped, time_major=False)
    for n, value in ops.expected(network, inputs).items():
        np.testing.assert_array_equal(
            got[n], value if n == "params_backprop" else value.swapaxes(0, 1), n
        )


def test_rows_end_at_their_lengths():
    network = Network("lstm", 3, 2, 2, 2)
    lengths = [3, 0, 5]
    inputs = ops.inputs_of(network, 5, 3, lengths=lengths)
    got = ops.expected(network, inputs)
    for row, length in enumerate(lengths):
        # As if the row were alone and had no padding.
        alone = {
            n: v if n in ("params", "sequence_lengths") else v[:, row : row + 1]
            for n, v in inputs.items()
        }
        alone["sequence_lengths"] = np.array([length])
        for n in ("input", "output_backprop"):
            alone[n] = alone[n][:length]
        want = ops.expected(network, alone)
        np.testing.assert_allclose(got["output"][:length, row : row + 1], want["output"])
        assert not got["output"][length:, row].any()
        for n in ("output_h", "output_c", "input_h_backprop", "input_c_backprop"):
            np.testing.assert_allclose(got[n][:, row : row + 1], want[n])


@pytest.mark.parametrize("case", torch_values.CASES)
def test_against_pytorch(case):
    network, inputs, want = torch_values.case(case)
    checks.assert_close(ops.expected(network, inputs), want, 1e-6)


# The buffer.


@pytest.mark.parametrize("network", NETWORKS, ids=name)
def test_buffer_has_no_holes(network):
    size = cudnn.params_size(network)
    weights, biases = cudnn.to_canonical(network, np.arange(size))
    assert len(biases) == 2 * network.gates * network.pseudo_layers
    assert len(weights) == len(biases) + (network.pseudo_layers if network.num_proj else 0)
    np.testing.assert_array_equal(cudnn.to_params(network, weights, biases), np.arange(size))
    with pytest.raises(ValueError, match="expected"):
        cudnn.to_canonical(network, np.arange(size + 1))


@pytest.mark.parametrize("mode", ["lstm", "gru"])
def test_buffer_is_the_one_that_keras_makes(mode):
    network = Network(mode, 3, 2)
    weights, biases = cudnn.to_canonical(network, np.arange(cudnn.params_size(network)))
    made = keras_cudnn.standardized([w.T for w in weights], biases)
    np.testing.assert_array_equal(made, np.arange(cudnn.params_size(network)))


@pytest.mark.skipif(not TF1, reason="TensorFlow 2 has no tf.contrib")
@pytest.mark.parametrize("layers, directions", [(1, 1), (2, 2)])
@pytest.mark.parametrize("mode", list(cudnn.GATES))
def test_canonical_shapes_are_those_of_contrib(mode, layers, directions):
    from tensorflow.contrib import cudnn_rnn

    network = Network(mode, 3, 2, layers, directions)
    kinds = {"lstm": "LSTM", "gru": "GRU", "rnn_tanh": "RNNTanh", "rnn_relu": "RNNRelu"}
    direction = network.attributes["direction"]
    layer = getattr(cudnn_rnn, "Cudnn" + kinds[mode])(layers, 3, direction=direction)
    layer._input_size = 2  # What build() would set, which makes nodes.
    weights, biases = cudnn.to_canonical(network, np.arange(cudnn.params_size(network)))
    assert [w.shape for w in weights] == list(layer.canonical_weight_shapes)
    assert [list(b.shape) for b in biases] == list(layer.canonical_bias_shapes)
