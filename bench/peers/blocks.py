"""The layers on TensorFlow's block ops: stock kernels, and ours."""

import time

import numpy as np

from bench.peers.nets import (
    CHAIN_SECONDS,
    CHAINED,
    GATES,
    INFERENCE,
    INT8,
    MOST_CALLS,
    SERVING,
    TRAINING,
    in_order,
    joined,
    split,
)
from blockcell.op_table import WEIGHT
from blockcell_tools.bench import graphs
from blockcell_tools.bench.timing import seconds_of
from blockcell_tools.bench.worker import start
from blockcell_tools.reference.inputs import expected

ICFO = ("i", "c", "f", "o")
"""The order of the gates in `BlockLSTM`."""

WEIGHTS = "_blockcell_weights"
"""A node's attribute, of our kernels."""

ATTRIBUTES = {"forget_bias": 0.0, "cell_clip": 0.0, "use_peephole": False, "reset_after": True}
"""Of the ops, as the others have it."""

SETTLING_SECONDS = 1.2
"""Kernels keep packed weights of a variable that calls have had for a second."""


class Blocks:
    """A side of the comparison: see `blockcell_tools.bench.side`."""

    def __init__(self, name, job):
        """Starts TensorFlow, and loads the library."""
        self._name = name
        self._sides, self._about = start(job)
        self._pair = self._net = None
        self._checked = set()
        self.calls = 1

    def about(self):
        """Versions, instruction set, and the kernels of the library."""
        return self._about

    def prepare(self, net, arrays):
        """Makes the graph of a net."""
        if self._pair:
            self._pair.__exit__()
        self._net, op = net, net.case.op
        for kernel in op.kernels:
            if kernel.name not in self._checked and kernel.function is None:
                self._sides.check_labels(kernel)
            self._checked.add(kernel.name)
        values = op_inputs(net, arrays)
        # A frozen graph has its weights in the graph, as ONNX Runtime has them in the model.
        weights = [tensor.name for tensor in op.inputs if tensor.kind == WEIGHT]
        constants = weights if net.work in (INFERENCE, INT8) else ()
        kept = weights if net.work == SERVING else ()
        nodes = {WEIGHTS: "int8"} if net.work == INT8 else {}
        self._pair = graphs.Pair(self._sides, op, values, ATTRIBUTES, constants, kept, nodes)
        # What the others return, and all that they compute.
        self._run = self._pair.chain(self._name, 1, None if net.work == TRAINING else ["h"])
        self.calls = 1
        if net.work in CHAINED:
            self._run()
            self.calls = max(1, min(MOST_CALLS, int(CHAIN_SECONDS / seconds_of(self._run))))
            self._run = self._pair.chain_by_data(self._name, self.calls, "h", "x")
        if net.work == SERVING:
            self._settle()

    def _settle(self):
        """Calls for as long as kernels take to keep what they pack of variables."""
        end = time.monotonic() + SETTLING_SECONDS
        while time.monotonic() < end:
            self._run()

    def run(self):
        """So many calls as `calls` says."""
        self._run()

    def results(self):
        """Outputs and gradients, named and laid out as `bench.peers.nets` says."""
        outputs = self._pair.outputs(self._name)
        found = {"h": outputs["h"]}
        if self._net.work == TRAINING:
            gradients = {"LSTM": lstm_gradients, "GRU": gru_gradients}[self._net.kind]
            found.update(gradients(self._net, outputs))
        return found


def op_inputs(net, arrays):
    """The inputs of a net's op."""
    values = {"LSTM": lstm_inputs, "GRU": gru_inputs}[net.kind](net, arrays)
    return {tensor.name: values[tensor.name] for tensor in net.case.op.inputs}


def in_float64(net, arrays):
    """H of all steps of the forward op, by the oracle."""
    kernel = net.case.op.kernels[0]
    attributes = {name: ATTRIBUTES[name] for name in kernel.attributes if name in ATTRIBUTES}
    return expected(kernel.name, op_inputs(net, arrays), **attributes)["h"]


def lstm_inputs(net, arrays):
    """The inputs of `BlockLSTM` and its gradient."""
    weights = np.concatenate([arrays["kernel"], arrays["recurrent"]])
    return {
        **{name: arrays[name] for name in ("x", "cs_prev", "h_prev", "h_grad")},
        **{name: np.zeros(net.cell_size, np.float32) for name in ("wci", "wcf", "wco")},
        "seq_len_max": np.int64(net.time),
        "w": in_order(weights, GATES["LSTM"], ICFO),
        "b": in_order(arrays["bias"], GATES["LSTM"], ICFO),
        "cs_grad": np.zeros_like(arrays["h_grad"]),
    }


def lstm_gradients(net, outputs):
    """The gradients that `BlockLSTMGrad` computes."""
    w_grad, b_grad = (in_order(outputs[n], ICFO, GATES["LSTM"]) for n in ("w_grad", "b_grad"))
    found = {name: outputs[name] for name in ("x_grad", "h_prev_grad", "cs_prev_grad")}
    kernel, recurrent = np.split(w_grad, [net.input_size])
    return dict(found, kernel_grad=kernel, recurrent_grad=recurrent, bias_grad=b_grad)


def gru_inputs(net, arrays):
    """The inputs of `BlockGRU` and its gradient."""
    kernel, recurrent = (split(GATES["GRU"], arrays[name]) for name in ("kernel", "recurrent"))
    of_input, of_state = (split(GATES["GRU"], row) for row in arrays["bias"])
    weights = {gate: np.concatenate([kernel[gate], recurrent[gate]]) for gate in GATES["GRU"]}
    biases = {gate: of_input[gate] + of_state[gate] for gate in "rz"}
    return {
        **{name: arrays[name] for name in ("x", "h_prev", "h_grad")},
        "sequence_length": np.full(net.batch, net.time, np.int64),
        "w_ru": np.concatenate([weights["r"], weights["z"]], axis=1),
        "w_c": weights["h"],
        "b_ru": np.concatenate([biases["r"], biases["z"]]),
        "b_c": of_input["h"],
        "b_hc": of_state["h"],
        "h_last_grad": np.zeros_like(arrays["h_prev"]),
    }


def gru_gradients(net, outputs):
    """The gradients that `BlockGRUGrad` computes."""
    (w_r, w_z), (b_r, b_z) = (np.split(outputs[n], 2, axis=-1) for n in ("w_ru_grad", "b_ru_grad"))
    weights = joined(GATES["GRU"], {"r": w_r, "z": w_z, "h": outputs["w_c_grad"]})
    kernel, recurrent = np.split(weights, [net.input_size])
    biases = [
        joined(GATES["GRU"], {"r": b_r, "z": b_z, "h": outputs[name]})
        for name in ("b_c_grad", "b_hc_grad")
    ]
    found = {name: outputs[name] for name in ("x_grad", "h_prev_grad")}
    return dict(found, kernel_grad=kernel, recurrent_grad=recurrent, bias_grad=np.stack(biases))
