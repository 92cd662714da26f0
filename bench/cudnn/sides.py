"""The sides of the comparison: see `blockcell_tools.bench.side`.

Results are `output`, and in training `input_grad`, `weights_grad` (all matrices in the order of the
buffer) and `biases_grad` (those of the biases of the input matrices: a cell has one bias for two).
"""

import numpy as np

import blockcell
from bench.cudnn.nets import TRAINING, Net
from bench.peers import rivals
from blockcell_tools.bench.graphs import LabelError
from blockcell_tools.bench.side import serve
from blockcell_tools.bench.tensorflow_side import TensorFlowSide
from blockcell_tools.bench.worker import answer, start
from blockcell_tools.reference import cudnn


def gradients_of_params(network, params_grad):
    """`weights_grad` and `biases_grad` of a gradient in the layout of the buffer."""
    weights, biases = cudnn.to_canonical(network, params_grad)
    gates = network.gates
    of_input = [b for n, b in enumerate(biases) if n % (2 * gates) < gates]
    return {
        "weights_grad": np.concatenate([w.ravel() for w in weights]),
        "biases_grad": np.concatenate(of_input),
    }


class _Graph(TensorFlowSide):
    """A network in a graph of TensorFlow; what differs is in `_build` and `_results`."""

    def prepare(self, net, arrays):
        """Makes the graph, with inputs in variables: nothing is computed beforehand."""
        v1 = self._tf.compat.v1
        self._net = net
        with self._tf.Graph().as_default() as graph:
            tensors = {
                name: v1.get_variable(name, initializer=value, use_resource=True).read_value()
                for name, value in arrays.items()
            }
            output, sources = self._build(net, tensors)
            self._fetches = [output]
            if net.work == TRAINING:
                self._fetches += v1.gradients(output, sources, tensors["output_grad"])
            # Nothing is copied to Python.
            step = self._tf.group(*self._fetches)
            self._open(graph)
            self._session.run(v1.global_variables_initializer())
            self._load(net, arrays)
            self.run = self._session.make_callable(step)

    def _load(self, net, arrays):
        """Sets variables of its own."""

    def results(self):
        """Outputs and gradients by name."""
        output, *gradients = self._session.run(self._fetches)
        found = {"output": output}
        if self._net.work == TRAINING:
            found.update(self._results(self._net.network, gradients))
        return found


class Ours(_Graph):
    """`CudnnRNN` on our kernels."""

    def __init__(self, name, job):
        """Loads the library."""
        super().__init__(name, job)
        _, self._about = start(job)

    def about(self):
        """Versions, instruction set, and the kernels of the library."""
        return self._about

    def _build(self, net, tensors):
        tf = self._tf
        states = tf.zeros([net.layers * net.directions, net.batch, net.units])
        output, *_ = tf.raw_ops.CudnnRNN(
            input=tensors["input"],
            input_h=states,
            input_c=states if net.mode == "lstm" else tf.zeros([]),
            params=tensors["params"],
            is_training=net.work == TRAINING,
            **net.network.attributes,
        )
        return output, [tensors["input"], tensors["params"]]

    def _results(self, network, gradients):
        input_grad, params_grad = gradients
        return {"input_grad": input_grad, **gradients_of_params(network, params_grad)}


class Cells(_Graph):
    """The compatible cells of `tf.contrib.cudnn_rnn`, step by step, on TensorFlow's kernels."""

    def _build(self, net, tensors):
        tf = self._tf
        from tensorflow.contrib import cudnn_rnn
        from tensorflow.contrib import rnn as contrib_rnn

        make = {"lstm": cudnn_rnn.CudnnCompatibleLSTMCell, "gru": cudnn_rnn.CudnnCompatibleGRUCell}
        cells = [[make[net.mode](net.units) for _ in range(net.layers)] for _ in range(2)]
        options = {"dtype": tf.float32, "time_major": True}
        if net.directions == 2:
            output, _, _ = contrib_rnn.stack_bidirectional_dynamic_rnn(
                *cells, tensors["input"], **options
            )
        else:
            stack = tf.nn.rnn_cell.MultiRNNCell(cells[0])
            output, _ = tf.nn.dynamic_rnn(stack, tensors["input"], **options)
        owned = [v for v in tf.trainable_variables() if "cell" in v.name]
        per_cell = len(owned) // (net.layers * net.directions)
        self._owned = [owned[n : n + per_cell] for n in range(0, len(owned), per_cell)]
        return output, [tensors["input"], *owned]

    def _load(self, net, arrays):
        network = net.network
        weights, biases = cudnn.to_canonical(network, arrays["params"])
        step = 2 * network.gates
        for n, variables in enumerate(self._owned):
            at = slice(n * step, (n + 1) * step)
            values = _to_cell(net.mode, weights[at], biases[at])
            for variable in variables:
                (name,) = (name for name in values if variable.op.name.endswith(name))
                variable.load(values[name], self._session)

    def _results(self, network, gradients):
        input_grad, *rest = gradients
        weights, biases = [], []
        for variables in self._owned:
            named = {v.op.name: rest.pop(0) for v in variables}
            of_cell = _of_cell(network, len(weights) // network.directions, named)
            weights.append(of_cell[0])
            biases.append(of_cell[1])
        return {
            "input_grad": input_grad,
            "weights_grad": np.concatenate(weights),
            "biases_grad": np.concatenate(biases),
        }


_ICFO = [0, 2, 1, 3]
"""Gates of the LSTM cell by their place in the buffer; its own inverse."""


def _to_cell(mode, weights, biases):
    """The variables of a cell, by the ends of their names, of the parts of a pseudo-layer."""
    gates = len(weights) // 2
    rows = [np.concatenate(pair, axis=1).T for pair in zip(weights[:gates], weights[gates:])]
    sums = [of_x + of_h for of_x, of_h in zip(biases[:gates], biases[gates:])]
    if mode == "lstm":
        return {
            "/kernel": np.concatenate([rows[k] for k in _ICFO], axis=1),
            "/bias": np.concatenate([sums[k] for k in _ICFO]),
        }
    return {
        "gates/kernel": np.concatenate(rows[:2], axis=1),
        "gates/bias": np.concatenate(sums[:2]),
        "input_projection/kernel": weights[2].T,
        "input_projection/bias": biases[2],
        "hidden_projection/kernel": weights[5].T,
        "hidden_projection/bias": biases[5],
    }


def _of_cell(network, layer, named):
    """`weights_grad` and `biases_grad` of a pseudo-layer, of the gradients of a cell."""

    def found(end):
        return next(value for name, value in named.items() if name.endswith(end))

    units = network.num_units
    if network.rnn_mode == "lstm":
        kernels = [np.split(found("/kernel"), 4, axis=1)[k] for k in _ICFO]
        biases = [np.split(found("/bias"), 4)[k] for k in _ICFO]
        parts = [np.split(kernel, [len(kernel) - units]) for kernel in kernels]
    else:
        kernels = np.split(found("gates/kernel"), 2, axis=1)
        parts = [np.split(kernel, [len(kernel) - units]) for kernel in kernels]
        parts.append([found(f"{part}_projection/kernel") for part in ("input", "hidden")])
        biases = [found("gates/bias"), found("input_projection/bias")]
    weights = [part[side].T.ravel() for side in (0, 1) for part in parts]
    return np.concatenate(weights), np.concatenate(biases)


class Torch(rivals.Torch):
    """The layers of PyTorch."""

    def prepare(self, net, arrays):
        """Makes the layers."""
        torch = self._torch
        self._net = net
        make = getattr(torch.nn, net.mode.upper())
        self._layers = make(
            net.input_size, net.units, net.layers, bidirectional=net.directions == 2
        )
        self._parameters = [
            getattr(self._layers, f"{kind}_{part}_l{layer}{suffix}")
            for kind in ("weight", "bias")
            for layer in range(net.layers)
            for suffix in ("", "_reverse")[: net.directions]
            for part in ("ih", "hh")
        ]
        values = np.split(arrays["params"], np.cumsum([p.numel() for p in self._parameters])[:-1])
        with torch.no_grad():
            for parameter, value in zip(self._parameters, values):
                parameter.copy_(torch.from_numpy(value.reshape(parameter.shape)))
        self._input = torch.from_numpy(arrays["input"])
        self._input.requires_grad_(net.work == TRAINING)
        self._output_grad = torch.from_numpy(arrays["output_grad"])

    def _call(self):
        training = self._net.work == TRAINING
        with self._torch.set_grad_enabled(training):
            output, _ = self._layers(self._input)
            if not training:
                return output, ()
            sources = [self._input, *self._parameters]
            return output, self._torch.autograd.grad(output, sources, self._output_grad)

    def results(self):
        """Outputs and gradients by name."""
        output, gradients = self._call()
        found = {"output": output.detach().numpy()}
        if gradients:
            input_grad, *rest = (gradient.numpy() for gradient in gradients)
            params_grad = np.concatenate([gradient.ravel() for gradient in rest])
            found["input_grad"] = input_grad
            found.update(gradients_of_params(self._net.network, params_grad))
        return found


SIDES = {"ours": Ours, "cells": Cells, "torch": Torch}

if __name__ == "__main__":
    answer(serve(SIDES, Net), (LabelError, blockcell.LibraryError))
