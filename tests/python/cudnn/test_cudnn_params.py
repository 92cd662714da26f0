"""CudnnRNNParamsSize, CudnnRNNParamsToCanonical and CudnnRNNCanonicalToParams, both versions."""

import numpy as np
import pytest
import tensorflow as tf

from blockcell_tools.reference import cudnn as oracle
from blockcell_tools.reference.cudnn import Network
from helpers import cudnn, keras_cudnn

NETWORKS = [
    Network(mode, 5, 5 if skip else 3, layers, directions, skip)
    for mode in cudnn.MODES
    for layers, directions, skip in [(1, 1, False), (2, 1, True), (3, 2, False), (2, 2, True)]
]
PROJECTED = [Network("lstm", 5, 3, *stack, num_proj=2) for stack in [(1, 1), (3, 2)]]
TYPES = [np.float32, np.float16, np.float64]


def name(network):
    suffix = "-skip_input" if network.skip_input else "-projected" if network.num_proj else ""
    return f"{network.rnn_mode}-{network.num_layers}x{network.directions}{suffix}"


def sizes(network):
    """The inputs that say how large the network is."""
    return {n: getattr(network, n) for n in ("num_layers", "num_units", "input_size")}


def evaluated(make):
    with tf.Graph().as_default() as graph:
        fetches = make()
    with tf.compat.v1.Session(graph=graph) as session:
        return session.run(fetches)


def params_size(network, dtype=np.float32, integer=np.int32, **attributes):
    return evaluated(
        lambda: tf.raw_ops.CudnnRNNParamsSize(
            T=dtype,
            S=integer,
            num_proj=network.num_proj,
            **sizes(network),
            **{**network.attributes, **attributes},
        )
    )


def to_canonical(network, params, version):
    count = 2 * network.gates * network.pseudo_layers
    arguments = {**sizes(network), **network.attributes, "params": params}
    if version == 1:
        answer = evaluated(
            lambda: tf.raw_ops.CudnnRNNParamsToCanonical(num_params=count, **arguments)
        )
    else:
        answer = evaluated(
            lambda: tf.raw_ops.CudnnRNNParamsToCanonicalV2(
                num_params_weights=count + network.pseudo_layers * bool(network.num_proj),
                num_params_biases=count,
                num_proj=network.num_proj,
                **arguments,
            )
        )
    return answer.weights, answer.biases


def to_params(network, weights, biases, version):
    op = getattr(tf.raw_ops, "CudnnRNNCanonicalToParams" + ("V2" if version == 2 else ""))
    arguments = {**sizes(network), **network.attributes}
    if version == 2:
        arguments["num_proj"] = network.num_proj
    return evaluated(lambda: op(weights=weights, biases=biases, **arguments))


@pytest.mark.parametrize("integer", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("network", NETWORKS + PROJECTED, ids=name)
def test_size(network, dtype, integer):
    got = np.asarray(params_size(network, dtype, integer))
    assert got.dtype == integer and got.shape == (1,)
    assert got[0] == oracle.params_size(network)


@pytest.mark.parametrize("input_size, skips", [(5, True), (4, False)])
def test_size_of_auto_select(input_size, skips):
    network = Network("gru", 5, input_size, 2, 2, skips)
    got = params_size(network, input_mode="auto_select")
    assert got == [oracle.params_size(network)]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    "network, version",
    [(network, 1) for network in NETWORKS] + [(network, 2) for network in NETWORKS + PROJECTED],
    ids=lambda value: f"V{value}" if isinstance(value, int) else name(value),
)
def test_canonical_and_back(network, version, dtype):
    params = np.arange(oracle.params_size(network)).astype(dtype)
    weights, biases = to_canonical(network, params, version)
    want_weights, want_biases = oracle.to_canonical(network, params)
    for got, want in zip((*weights, *biases), (*want_weights, *want_biases)):
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, want)
    assert (len(weights), len(biases)) == (len(want_weights), len(want_biases))
    np.testing.assert_array_equal(to_params(network, weights, biases, version), params)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("mode", ["lstm", "gru"])
def test_agrees_with_keras(mode, version):
    network = Network(mode, 4, 3)
    random = np.random.RandomState(0)
    canonical = oracle.to_canonical(network, cudnn.params_of(network, random).astype("f"))
    keras = keras_cudnn.standardized([w.T for w in canonical[0]], canonical[1])
    np.testing.assert_array_equal(to_params(network, *canonical, version), keras)


def test_what_the_network_computes_with_converted_weights():
    """Of canonical weights and biases that are all zero but one, only that one's gate moves."""
    network = Network("lstm", 2, 2)
    weights, biases = oracle.to_canonical(network, np.zeros(oracle.params_size(network), "f"))
    biases[4 + 2][1] = 0.5  # The recurrent bias of c, second unit.
    inputs = cudnn.inputs_of(network, 1, 1)
    inputs["params"] = to_params(network, weights, biases, 2)
    inputs["input_c"][:] = 0
    got = cudnn.run(network, inputs)
    np.testing.assert_allclose(got["output_c"][0, 0], [0, 0.5 * np.tanh(0.5)], rtol=1e-6)
