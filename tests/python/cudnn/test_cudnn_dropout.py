"""Dropout between layers: reproducible masks of 0 and 1 / (1 - dropout), in training alone.

The masks can be seen: a layer of `rnn_relu` without recurrence, with the identity for W, hands on
what it gets, if that is positive.
"""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from blockcell_tools.reference import cudnn as oracle
from blockcell_tools.reference.cudnn import Network
from helpers import cudnn

RATE = 0.4
SEEDS = {"seed": 3, "seed2": 5}
TIME, BATCH, UNITS = 6, 5, 7


def transparent(network):
    """A buffer with which each layer, if `rnn_relu`, hands on its input, or the sum of both."""
    weights, biases = oracle.to_canonical(network, np.zeros(oracle.params_size(network), "f"))
    for weight in weights[::2]:
        weight[...] = np.tile(np.eye(network.num_units), 2)[:, : weight.shape[1]]
    return oracle.to_params(network, weights, biases)


def mask(layers=2, time=TIME, batch=BATCH, units=UNITS, dtype=np.float32, **attributes):
    """What a network of layers multiplies an input of ones with."""
    network = Network("rnn_relu", units, units, layers)
    inputs = cudnn.inputs_of(network, time, batch, dtype)
    inputs["input"][:] = 1
    inputs["input_h"][:] = 0
    inputs["params"] = transparent(network).astype(dtype)
    options = {"dropout": RATE, **SEEDS, **attributes}
    return cudnn.run(network, inputs, **options)["output"]


def test_values_are_0_and_the_scale():
    got = mask(time=40, units=50)
    np.testing.assert_allclose(np.unique(got), [0, 1 / (1 - RATE)], rtol=1e-6)
    assert np.mean(got == 0) == pytest.approx(RATE, abs=0.03)
    # No row, step or unit of its own rate.
    for axes in itertools.combinations(range(3), 2):
        assert np.abs(np.mean(got == 0, axis=axes) - RATE).max() < 0.3


def test_half_has_the_same_scale():
    got = mask(dtype=np.float16, time=40)
    np.testing.assert_allclose(np.unique(got), [0, 1 / (1 - RATE)], rtol=1e-3)


@pytest.mark.parametrize("other", [{"seed": 4}, {"seed2": 4}])
def test_seeds_make_other_masks(other):
    assert np.any(mask(**other) != mask())


def test_layers_have_masks_of_their_own():
    three = mask(layers=3, time=40)
    # Both masks drop: were they the same, two layers would drop as much as one.
    assert np.mean(three == 0) == pytest.approx(1 - (1 - RATE) ** 2, abs=0.04)


def test_same_at_any_number_of_threads_and_from_run_to_run():
    got = [mask(time=40, batch=64, units=65, threads=threads) for threads in (1, 1, 2, 2)]
    assert all(np.array_equal(one, got[0]) for one in got)


def test_each_call_has_other_masks_the_same_in_every_session():
    one, two = mask(), mask(calls=2)
    assert np.any(one != two)
    np.testing.assert_array_equal(mask(calls=2), two)


SETTINGS = [("1", True), ("TRUE", True), ("true", True), ("0", False), ("False", False)]
"""Of TensorFlow's switch, as its `ReadBoolFromEnvVar` reads them, and whether it is on."""


@pytest.mark.parametrize("value, resets", SETTINGS)
def test_tensorflow_s_switch_resets_the_generator_before_each_call(value, resets, monkeypatch):
    monkeypatch.setenv("TF_CUDNN_RESET_RND_GEN_STATE", value)
    assert np.array_equal(mask(), mask(calls=2)) == resets


@pytest.mark.parametrize("value", ["on", "", "yes", "2", " 1"])
def test_a_switch_that_tensorflow_would_refuse(value, monkeypatch):
    monkeypatch.setenv("TF_CUDNN_RESET_RND_GEN_STATE", value)
    complaint = "RESET_RND_GEN_STATE must be 0, 1, false or true, got " + value
    with pytest.raises(tf.errors.InvalidArgumentError, match=complaint):
        mask()


@pytest.mark.parametrize("version", cudnn.VERSIONS)
def test_versions_have_the_same_masks(version):
    np.testing.assert_array_equal(mask(version=version), mask())


@pytest.mark.parametrize(
    "attributes", [{"dropout": 0.0}, {"is_training": False}, {"layers": 1}], ids=str
)
def test_none_in_inference_nor_in_one_layer(attributes):
    np.testing.assert_array_equal(mask(**attributes), np.ones((TIME, BATCH, UNITS), "f"))


def test_rate_1_drops_all():
    assert not mask(dropout=1.0).any()


@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("mode", cudnn.MODES)
def test_forward_and_gradients_have_one_mask(mode, directions):
    """By the oracle, with the mask that `rnn_relu` shows for the same sizes and seeds."""
    network = Network(mode, UNITS, 4, 2, directions)
    inputs = cudnn.inputs_of(network, TIME, BATCH, lengths="random")
    got = cudnn.run(network, inputs, dropout=RATE, **SEEDS)
    cudnn.assert_accurate(network, inputs, got, mode, masks=[shown_mask(directions)])


def shown_mask(directions):
    """The mask [T, B, directions*UNITS] between two layers: what flows back through it, unchanged.

    The input of the second layer is 1, and so is each gradient that arrives there.
    """
    network = Network("rnn_relu", UNITS, UNITS, 2, directions)
    weights, biases = oracle.to_canonical(network, np.zeros(oracle.params_size(network), "f"))
    for weight in weights[::2][:directions]:
        weight[...] = np.eye(UNITS)
    found = []
    for direction in range(directions):
        # Each direction of the first layer alone goes through the second one's forward direction.
        for weight in weights[2 * directions :: 2]:
            weight[...] = 0
        columns = slice(direction * UNITS, (direction + 1) * UNITS)
        weights[2 * directions][:, columns] = np.eye(UNITS)
        inputs = cudnn.inputs_of(network, TIME, BATCH)
        inputs["input"][:] = 1
        inputs["input_h"][:] = 0
        inputs["params"] = oracle.to_params(network, weights, biases)
        output = cudnn.run(network, inputs, dropout=RATE, **SEEDS)["output"]
        found.append(output[:, :, :UNITS])
    return np.concatenate(found, axis=2)


@pytest.mark.parametrize("mode", cudnn.MODES)
def test_gradients_by_finite_differences(mode):
    network = Network(mode, UNITS, 4, 3)
    inputs = cudnn.inputs_of(network, TIME, BATCH)
    options = {"dropout": RATE, **SEEDS}
    got = cudnn.run(network, inputs, **options)
    for name in ("input", "params"):
        gradient = got[name + "_backprop"]
        slope = cudnn.slope_along(network, inputs, name, gradient, **options)
        assert slope == pytest.approx(1, abs=1e-2), name
