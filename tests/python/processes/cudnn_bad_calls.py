"""Malformed calls of the cuDNN ops, for `test_cudnn_bad_calls`.

Each has to be refused with an InvalidArgumentError that names op and tensor; a good call after it
has to work.
"""

import re

import numpy as np
import tensorflow as tf

import blockcell
from blockcell_tools.reference import cudnn as oracle
from blockcell_tools.reference.cudnn import Network
from helpers import cudnn

TIME, BATCH = 5, 3
NETWORK = Network("lstm", 4, 2, 2, 2)


def prepare():
    blockcell.load()


def _mutations(shape):
    """Wrong shapes made from a right one."""
    yield ()
    yield shape + (1,)
    if len(shape) > 1:
        yield shape[1:]
    for axis, size in enumerate(shape):
        for other in (size + 1, size - 1, 0):
            yield shape[:axis] + (other,) + shape[axis + 1 :]


def _own_words(op, error):
    """The line that the kernel wrote; around it TensorFlow says where the node comes from."""
    lines = [line for line in error.message.splitlines() if line.startswith(f"{op}: ")]
    return lines[0] if lines else error.message


class _Graph:
    """An op with placeholders of unknown shape for its inputs."""

    def __init__(self, op, inputs, **attributes):
        self.op, self.inputs = op, inputs
        with tf.Graph().as_default() as graph:
            self.feeds = {
                n: tf.compat.v1.placeholder(np.asarray(v).dtype, name=n) for n, v in inputs.items()
            }
            self.fetches = getattr(tf.raw_ops, op)(**self.feeds, **attributes)
        self.session = tf.compat.v1.Session(graph=graph)

    def run(self, **changed):
        inputs = {**self.inputs, **changed}
        return self.session.run(self.fetches, {self.feeds[n]: v for n, v in inputs.items()})

    def refuses(self, names, what="", error=tf.errors.InvalidArgumentError, **changed):
        """Checks that an input in `names` is complained about, and that good calls still work."""
        try:
            self.run(**changed)
        except error as refusal:
            message = _own_words(self.op, refusal)
            words = re.findall(r"\w+", message[len(self.op) :])
            assert set(names) & set(words), f"{what}: {message}"
        else:
            raise AssertionError(f"{self.op} accepted {what or changed}")
        self.run()


def _all_inputs(version, mode):
    """Inputs of the forward op and of Backprop."""
    network = NETWORK._replace(rnn_mode=mode)
    inputs = cudnn.inputs_of(network, TIME, BATCH)
    got = cudnn.run(network, inputs, version)
    names = cudnn.FORWARD_INPUTS[: 5 if version == 3 else 4]
    forward = {name: inputs[name] for name in names}
    backprop = dict(forward)
    backprop.update({n: v for n, v in inputs.items() if n.endswith("_backprop")})
    backprop.update({n: got[n] for n in (*cudnn.FORWARD, "reserve_space")})
    if version > 1:
        backprop["host_reserved"] = got["host_reserved"]
    return network, forward, backprop


def _wrong_shapes(version, *modes):
    for mode in modes:
        network, *both = _all_inputs(version, mode)
        for kind, inputs in zip(("CudnnRNN", "CudnnRNNBackprop"), both):
            graph = _Graph(kind + cudnn.suffix(version), inputs, **network.attributes)
            graph.run()
            for name, value in inputs.items():
                if name == "host_reserved" or (mode == "gru" and "_c" in name):
                    continue  # Not used.
                for shape in _mutations(value.shape):
                    if name == "input" and shape[1:] == value.shape[1:] and kind == "CudnnRNN":
                        continue  # It alone says how many steps there are.
                    # Sizes are taken from these two, and others are blamed if they disagree.
                    named = inputs if name in ("input", "input_h") else [name]
                    wrong = np.ones(shape, value.dtype)
                    graph.refuses(named, f"{name} of shape {shape}", **{name: wrong})


def wrong_shapes_v1():
    _wrong_shapes(1, "lstm")


def wrong_shapes_v2():
    _wrong_shapes(2, "gru")


def wrong_shapes_v3():
    _wrong_shapes(3, "lstm", "gru")


def lengths_out_of_range():
    network, *both = _all_inputs(3, "gru")
    for kind, inputs in zip(("CudnnRNNV3", "CudnnRNNBackpropV3"), both):
        graph = _Graph(kind, inputs, **network.attributes)
        for length in (-1, TIME + 1, 2**31 - 1, -(2**31)):
            lengths = np.array([1, length, 2], np.int32)
            graph.refuses(["sequence_lengths"], sequence_lengths=lengths)


def batch_major_shapes():
    network = NETWORK
    inputs = cudnn.inputs_of(network, TIME, BATCH, time_major=False)
    forward = {name: inputs[name] for name in cudnn.FORWARD_INPUTS}
    graph = _Graph("CudnnRNNV3", forward, time_major=False, **network.attributes)
    graph.run()
    graph.refuses(["input_h"], input_h=forward["input_h"].swapaxes(0, 1))
    graph.refuses(["input_c"], input_c=forward["input_c"].swapaxes(0, 1))


def reserve_space_of_another_network():
    """Of inference, of other sizes, of another mode."""
    network, _, inputs = _all_inputs(2, "lstm")
    graph = _Graph("CudnnRNNBackpropV2", inputs, **network.attributes)
    size = inputs["reserve_space"].size
    for wrong in (0, 1, size - 1, size + 1, 2 * size):
        graph.refuses(["reserve_space"], reserve_space=np.zeros(wrong, "f"))


def odd_states_of_two_directions():
    network, inputs, _ = _all_inputs(1, "gru")
    graph = _Graph("CudnnRNN", inputs, **network.attributes)
    graph.refuses(["input_h"], input_h=np.zeros((3, BATCH, network.num_units), "f"))
    graph.refuses(["input_h"], input_h=np.zeros((0, BATCH, network.num_units), "f"))


def skip_input_of_another_size():
    network, inputs, _ = _all_inputs(1, "gru")
    attributes = {**network.attributes, "input_mode": "skip_input"}
    params = np.zeros(oracle.params_size(network._replace(input_size=4, skip_input=True)), "f")
    good = {**inputs, "input": np.zeros((TIME, BATCH, 4), "f"), "params": params}
    graph = _Graph("CudnnRNN", good, **attributes)
    graph.run()
    graph.refuses(["input_size"], input=inputs["input"])


def dropout_out_of_range():
    network, inputs, _ = _all_inputs(1, "gru")
    for dropout in (-0.1, 1.5, float("nan")):
        try:
            _Graph("CudnnRNN", inputs, dropout=dropout, **network.attributes).run()
        except tf.errors.InvalidArgumentError as error:
            assert _own_words("CudnnRNN", error).startswith("CudnnRNN: dropout "), error
        else:
            raise AssertionError(f"dropout {dropout} was accepted")


def projections_that_cannot_be():
    """Of more columns than there are units, of less than none, and not of an LSTM."""
    for mode, num_proj in (("lstm", NETWORK.num_units + 1), ("lstm", -1), ("gru", 2)):
        network, *both = _all_inputs(3, mode)
        for kind, inputs in zip(("CudnnRNNV3", "CudnnRNNBackpropV3"), both):
            try:
                _Graph(kind, inputs, num_proj=num_proj, **network.attributes).run()
            except tf.errors.InvalidArgumentError as error:
                assert "num_proj" in _own_words(kind, error), error
            else:
                raise AssertionError(f"{mode} accepted num_proj={num_proj}")


def wrong_shapes_with_a_projection():
    """The state of an LSTM has other columns than its cells."""
    network = NETWORK._replace(num_proj=3)
    inputs = cudnn.inputs_of(network, TIME, BATCH)
    forward = {name: inputs[name] for name in cudnn.FORWARD_INPUTS}
    graph = _Graph("CudnnRNNV3", forward, num_proj=3, **network.attributes)
    graph.run()
    graph.refuses(["input_h"], input_h=np.zeros_like(inputs["input_c"]))
    graph.refuses(["input_c", "params"], input_c=np.zeros_like(inputs["input_h"]))
    graph.refuses(["params"], params=inputs["params"][:-1])


def sizes_of_params_size():
    inputs = {n: np.int32(getattr(NETWORK, n)) for n in ("num_layers", "num_units", "input_size")}
    graph = _Graph("CudnnRNNParamsSize", inputs, T=tf.float32, S=tf.int32, **NETWORK.attributes)
    assert graph.run() == [oracle.params_size(NETWORK)]
    graph.refuses(["num_layers"], num_layers=np.int32(0))
    for name in inputs:
        graph.refuses([name], **{name: np.int32(-1)})
        graph.refuses([name], **{name: np.array([2, 3], np.int32)})
    huge = {name: np.int32(2**31 - 1) for name in inputs}
    graph.refuses(["params_size"], "a size beyond int32", **huge)


def _canonical(version):
    weights, biases = oracle.to_canonical(NETWORK, np.zeros(oracle.params_size(NETWORK), "f"))
    sizes = {n: np.int32(getattr(NETWORK, n)) for n in ("num_layers", "num_units", "input_size")}
    counts = {"num_params": len(weights)}
    if version == 2:
        counts = {"num_params_weights": len(weights), "num_params_biases": len(biases)}
    return weights, biases, sizes, counts


def _params_to_canonical(version):
    _, _, sizes, counts = _canonical(version)
    inputs = {**sizes, "params": np.zeros(oracle.params_size(NETWORK), "f")}
    op = "CudnnRNNParamsToCanonical" + cudnn.suffix(version)
    graph = _Graph(op, inputs, **counts, **NETWORK.attributes)
    graph.run()
    size = inputs["params"].size
    for shape in ((size - 1,), (size + 1,), (0,), (), (size, 1)):
        graph.refuses(["params"], params=np.zeros(shape, "f"))
    for name in sizes:
        graph.refuses([name], **{name: np.int32(-1)})
        graph.refuses([name], **{name: np.array([1, 2], np.int32)})
    for name in counts:
        wrong = _Graph(op, inputs, **{**counts, name: counts[name] - 1}, **NETWORK.attributes)
        try:
            wrong.run()
        except tf.errors.InvalidArgumentError as error:
            assert "num_params" in _own_words(op, error), error
        else:
            raise AssertionError(f"{op} accepted a wrong {name}")


def params_to_canonical_v1():
    _params_to_canonical(1)


def params_to_canonical_v2():
    _params_to_canonical(2)


def _canonical_to_params(version):
    weights, biases, sizes, _ = _canonical(version)
    op = "CudnnRNNCanonicalToParams" + cudnn.suffix(version)

    def run(weights, biases):
        with tf.Graph().as_default() as graph:
            tensors = [
                [tf.compat.v1.placeholder_with_default(v, None) for v in values]
                for values in (weights, biases)
            ]
            kwargs = dict(zip(("weights", "biases"), tensors))
            params = getattr(tf.raw_ops, op)(**kwargs, **sizes, **NETWORK.attributes)
        with tf.compat.v1.Session(graph=graph) as session:
            return session.run(params)

    def refuses(name, weights, biases):
        try:
            run(weights, biases)
        except tf.errors.InvalidArgumentError as error:
            assert name in _own_words(op, error), error
        else:
            raise AssertionError(f"{op} accepted wrong {name}")

    run(weights, biases)
    for k in (0, 5, len(weights) - 1):
        for wrong in (weights[k][:-1], weights[k][:, :1], weights[k].ravel()[:-1]):
            refuses("weights", [*weights[:k], wrong, *weights[k + 1 :]], biases)
        refuses("biases", weights, [*biases[:k], biases[k][:-1], *biases[k + 1 :]])
    run(weights, biases)


def canonical_to_params_v1():
    _canonical_to_params(1)


def canonical_to_params_v2():
    _canonical_to_params(2)
