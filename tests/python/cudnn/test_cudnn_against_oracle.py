"""Every op, mode and option of the cuDNN RNN ops against the oracle."""

import itertools
import random

import numpy as np
import pytest

from blockcell_tools.reference.cudnn import Network
from helpers import cudnn, sampling

STACKS = [(1, 1), (1, 2), (2, 1), (2, 2), (3, 2)]  # Layers and directions.
UNITS, TIMES, BATCHES, INPUTS = (
    (1, 7, 8, 9, 16, 17, 33),
    (1, 2, 5, 17),
    (1, 3, 5, 20),
    (1, 7, 16, 17),
)
OPTIONS = ["V1", "V2", "V3", "V3-lengths", "V3-batch_major", "V3-batch_major-lengths"]


def cases():
    """(network, time, batch, options, element type)."""
    draw = random.Random(3)
    for mode, stack, units in itertools.product(cudnn.MODES, STACKS, UNITS):
        for dtype in (np.float32, np.float16):
            for skip in (False, True):
                input_size = units if skip else draw.choice(INPUTS)
                network = Network(mode, units, input_size, *stack, skip)
                sizes = draw.choice(TIMES), draw.choice(BATCHES)
                yield (network, *sizes, draw.choice(OPTIONS), dtype)


def features(case):
    network, time, batch, options, dtype = case
    mode = network.rnn_mode
    return [
        (mode, dtype, network.num_layers, network.directions, network.skip_input),
        *((mode, dtype, value) for value in (options, f"{time} steps", f"{batch} rows")),
        (mode, network.num_units),
    ]


def name(case):
    network, time, batch, options, dtype = case
    sizes = "x".join(map(str, (time, batch, *network[1:5])))
    skip = "-skip_input" if network.skip_input else ""
    return f"{network.rnn_mode}-{sizes}{skip}-{options}-{np.dtype(dtype).name}"


def check(network, time, batch, options, dtype, what, **attributes):
    version, time_major = int(options[1]), "batch_major" not in options
    lengths = "random" if "lengths" in options else None
    inputs = cudnn.inputs_of(network, time, batch, dtype, lengths, time_major=time_major)
    if version == 3:
        attributes["time_major"] = time_major
    got = cudnn.run(network, inputs, version, **attributes)
    cudnn.assert_accurate(network, inputs, got, what, time_major)
    return inputs, got


SAMPLE = sampling.sample(list(cases()), features)


@pytest.mark.parametrize("case", SAMPLE, ids=name)
def test_forward_and_backprop(case):
    check(*case, name(case))


@pytest.mark.parametrize("mode", cudnn.MODES)
def test_large(mode):
    check(Network(mode, 65, 200, 2, 2), 6, 20, "V3-lengths", np.float32, mode)


@pytest.mark.parametrize("options", OPTIONS[2:])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("units, num_proj", [(9, 1), (16, 16), (33, 17)])
def test_projection(units, num_proj, dtype, options):
    for layers, directions in STACKS:
        network = Network("lstm", units, 5, layers, directions, num_proj=num_proj)
        check(network, 5, 3, options, dtype, f"{network}")


@pytest.mark.parametrize("mode", cudnn.MODES)
@pytest.mark.parametrize("input_size, skips", [(5, True), (4, False)])
def test_auto_select_skips_where_sizes_allow(mode, input_size, skips):
    network = Network(mode, 5, input_size, 2, 1, skips)
    check(network, 3, 2, "V2", np.float32, mode, input_mode="auto_select")


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("dtype, elements", [(np.float32, 1), (np.float16, 2)])
@pytest.mark.parametrize("mode, steps", [("lstm", 7), ("gru", 5), ("rnn_tanh", 1), ("rnn_relu", 1)])
def test_size_of_reserve_space(mode, steps, dtype, elements, dropout):
    """As docs/cudnn.md says."""
    network, time, batch = Network(mode, 9, 4, 3, 2), 5, 3
    got = cudnn.run(network, cudnn.inputs_of(network, time, batch, dtype), dropout=dropout)
    between = 2 * 2 * (2 if dropout else 1)  # Layers less one, times directions.
    want = elements * time * batch * 9 * (steps * network.pseudo_layers + between)
    assert got["reserve_space"].shape == (want,)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_size_of_reserve_space_with_a_projection(dropout):
    network, time, batch = Network("lstm", 9, 4, 3, 2, num_proj=5), 5, 3
    got = cudnn.run(network, cudnn.inputs_of(network, time, batch), dropout=dropout)
    cells, outputs = time * batch * 9, time * batch * 5
    between = 2 * 2 * (2 if dropout else 1) * outputs
    want = (7 * cells + outputs) * network.pseudo_layers + between
    assert got["reserve_space"].shape == (want,)


@pytest.mark.parametrize("version", cudnn.VERSIONS)
@pytest.mark.parametrize("mode", cudnn.MODES)
def test_inference_gives_the_same_and_saves_nothing(mode, version):
    network = Network(mode, 9, 4, 2, 2)
    inputs = cudnn.inputs_of(network, 5, 3)
    training = cudnn.run(network, inputs, version)
    inference = cudnn.run(network, inputs, version, is_training=False)
    assert training["reserve_space"].size > 0
    assert inference["reserve_space"].size == 0
    for output in cudnn.FORWARD:
        np.testing.assert_array_equal(inference[output], training[output])


@pytest.mark.parametrize("mode", cudnn.MODES)
def test_versions_give_the_same_bits(mode):
    network = Network(mode, 9, 4, 2, 2)
    inputs = cudnn.inputs_of(network, 5, 3)
    one, two, three = (cudnn.run(network, inputs, version) for version in cudnn.VERSIONS)
    for output in cudnn.FORWARD + cudnn.BACKPROP:
        np.testing.assert_array_equal(one[output], two[output])
        np.testing.assert_array_equal(one[output], three[output])


@pytest.mark.parametrize("mode", cudnn.MODES)
def test_padding_is_never_read(mode):
    network = Network(mode, 5, 4, 2, 2)
    lengths = np.array([4, 0, 6, 1], np.int32)
    inputs = cudnn.inputs_of(network, 6, 4, lengths=lengths)
    want = cudnn.run(network, inputs)
    for row, length in enumerate(lengths):
        for tensor in ("input", "output_backprop"):
            inputs[tensor][length:, row] = np.nan
    got = cudnn.run(network, inputs)
    for output in cudnn.FORWARD + cudnn.BACKPROP:
        np.testing.assert_array_equal(got[output], want[output], output)


EMPTY = [  # Time, batch, input_size, units.
    *[(0, 3, 2, 4), (5, 0, 2, 4), (5, 3, 0, 4), (5, 3, 2, 0)],
    *[(0, 0, 2, 4), (0, 3, 0, 4), (5, 0, 0, 4), (5, 0, 2, 0), (0, 0, 0, 0)],
]


@pytest.mark.parametrize("options", ["V1", "V3-lengths", "V3-batch_major"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("mode", cudnn.MODES)
def test_empty_sizes(mode, dtype, options):
    for layers, directions in ((1, 1), (2, 2)):
        for time, batch, input_size, units in EMPTY:
            # Filled memory, so that an output nobody wrote to would not look like zeros.
            check(Network(mode, 4, 2, layers, directions), 5, 3, options, dtype, mode)
            network = Network(mode, units, input_size, layers, directions)
            check(network, time, batch, options, dtype, f"{network} {time} {batch}")
