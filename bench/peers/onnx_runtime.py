"""The layers in ONNX Runtime."""

import os
import tempfile

import numpy as np

from bench.peers.nets import CHAINED, GATES, in_order

_GATES = {"LSTM": ("i", "o", "f", "c"), "GRU": ("z", "r", "h")}
"""ONNX's order of the gates."""

_OPSET, _IR = 17, 8
"""Versions of the operators and of the format: old ones, which every runtime of today reads."""


class OnnxRuntime:
    """A side of the comparison, forward only: see `blockcell_tools.bench.side`."""

    def __init__(self, name, job):
        """Imports the runtime; its threads are made with each model."""
        import onnxruntime

        self._quantizes = name == "onnxruntime_int8"

        self._runtime = onnxruntime
        self._options = onnxruntime.SessionOptions()
        self._options.intra_op_num_threads = job["threads"]
        self._options.inter_op_num_threads = 1
        self._session = self._feeds = None

    def about(self):
        """Versions."""
        return {"versions": {"onnxruntime": self._runtime.__version__}}

    def prepare(self, net, arrays):
        """Makes a model of the layer, whose weights and states are constants, and loads it."""
        if net.work not in CHAINED:
            raise ValueError(f"the models are for {', '.join(CHAINED)} only")
        content = model(net, arrays)
        content = quantized(content) if self._quantizes else content
        self._session = self._runtime.InferenceSession(
            content.SerializeToString(), self._options, ["CPUExecutionProvider"]
        )
        self._feeds = {"x": arrays["x"]}

    def run(self):
        """One call."""
        self._session.run(["h"], self._feeds)

    def results(self):
        """The output, named and laid out as `bench.peers.nets` says."""
        (h,) = self._session.run(["h"], self._feeds)
        return {"h": h[:, 0]}


def model(net, arrays):
    """The layer as an ONNX model, from x [time, batch, input] to h [time, 1, batch, cell]."""
    from onnx import TensorProto, helper, numpy_helper

    values = constants(net, arrays)
    names = ["x", "w", "r", "b", "", *list(values)[3:]]  # None for the lengths: all are whole.
    attributes = {"hidden_size": net.cell_size}
    if net.kind == "GRU":
        attributes["linear_before_reset"] = 1
    shapes = {
        "x": (net.time, net.batch, net.input_size),
        "h": (net.time, 1, net.batch, net.cell_size),
    }
    x, h = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in shapes.items()
    )
    graph = helper.make_graph(
        [helper.make_node(net.kind, names, ["h"], **attributes)],
        "layer",
        [x],
        [h],
        [numpy_helper.from_array(value, name) for name, value in values.items()],
    )
    opsets = [helper.make_opsetid("", _OPSET)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=_IR)


def quantized(content):
    """A model with its weights in int8."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "int8.onnx")
        quantize_dynamic(content, path, weight_type=QuantType.QInt8, per_channel=True)
        return onnx.load(path)


def constants(net, arrays):
    """Weights, biases and first states, by name, in the order of the node's inputs."""
    kind = net.kind
    kernel, recurrent, bias = (
        in_order(arrays[name], GATES[kind], _GATES[kind])
        for name in ("kernel", "recurrent", "bias")
    )
    # The LSTM, too, has a bias for the state; one of the two is enough.
    of_input, of_state = (bias, np.zeros_like(bias)) if kind == "LSTM" else bias
    values = {"w": kernel.T, "r": recurrent.T, "b": np.concatenate([of_input, of_state])}
    values["h_prev"] = arrays["h_prev"]
    if kind == "LSTM":
        values["cs_prev"] = arrays["cs_prev"]
    return {name: np.ascontiguousarray(value[None]) for name, value in values.items()}
