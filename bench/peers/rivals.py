"""The layers of Keras and of PyTorch."""

import numpy as np

from bench.peers.nets import GATES, TRAINING, in_order
from blockcell_tools.bench.tensorflow_side import TensorFlowSide

_WEIGHTS = ("kernel", "recurrent", "bias")
_TORCH_GATES = {"LSTM": ("i", "f", "c", "o"), "GRU": ("r", "z", "h")}
"""PyTorch's order of the gates; it calls the candidates g and n."""


def _states(net):
    """The names of the initial states."""
    return ("h_prev", "cs_prev") if net.kind == "LSTM" else ("h_prev",)


class Keras(TensorFlowSide):
    """A side of the comparison, as `bench.side` has it. Sequences are batch-major, as usual."""

    def __init__(self, name, job):
        """Starts TensorFlow with so many threads in every pool."""
        super().__init__(name, job)
        self._set_threads()
        self._net = self._call = None

    def about(self):
        """Versions."""
        return {"versions": {"keras": self._tf.keras.__version__}}

    def prepare(self, net, arrays):
        """Makes the layer, and a function of the graph that calls it."""
        tf = self._tf
        self._net = net
        layer = getattr(tf.keras.layers, net.kind)(net.cell_size, return_sequences=True)
        layer.build((net.batch, net.time, net.input_size))
        layer.set_weights([arrays[name] for name in _WEIGHTS])
        x, h_grad = (tf.constant(arrays[name].swapaxes(0, 1)) for name in ("x", "h_grad"))
        states = [tf.constant(arrays[name]) for name in _states(net)]

        @tf.function
        def call(x, h_grad, *states):
            if net.work != TRAINING:
                return layer(x, initial_state=list(states)), []
            with tf.GradientTape() as tape:
                tape.watch((x, states))
                h = layer(x, initial_state=list(states))
            sources = [x, *states, *layer.trainable_weights]
            return h, tape.gradient(h, sources, output_gradients=h_grad)

        # Traced here: a call is nothing but a run of the graph.
        traced = call.get_concrete_function(x, h_grad, *states)
        self._call = lambda: traced(x, h_grad, *states)

    def run(self):
        """One call."""
        self._call()

    def results(self):
        """Outputs and gradients, named and laid out as `bench.peers.nets` says."""
        h, gradients = self._call()
        found = {"h": h.numpy().swapaxes(0, 1)}
        if self._net.work == TRAINING:
            names = ("x", *_states(self._net), *_WEIGHTS)
            found.update((n + "_grad", g.numpy()) for n, g in zip(names, gradients))
            found["x_grad"] = found["x_grad"].swapaxes(0, 1)
        return found


class Torch:
    """A side of the comparison: see `blockcell_tools.bench.side`."""

    def __init__(self, name, job):
        """Starts PyTorch."""
        del name
        import torch

        self._torch = torch
        torch.set_num_threads(job["threads"])
        torch.set_num_interop_threads(1)
        self._net = None

    def about(self):
        """Versions."""
        return {"versions": {"torch": str(self._torch.__version__)}}

    def prepare(self, net, arrays):
        """Makes the layer."""
        torch = self._torch
        self._net = net
        self._layer = getattr(torch.nn, net.kind)(net.input_size, net.cell_size)
        parameters = dict(self._layer.named_parameters())
        with torch.no_grad():
            for name, array in self._weights(arrays).items():
                parameters[name].copy_(torch.from_numpy(np.ascontiguousarray(array)))
        self._x, self._h_grad = (torch.from_numpy(arrays[name]) for name in ("x", "h_grad"))
        self._states = [torch.from_numpy(arrays[name])[None] for name in _states(net)]
        self._sources = [self._x, *self._states]
        if net.work == TRAINING:
            for source in self._sources:
                source.requires_grad_()
        self._names = list(parameters)
        self._sources += parameters.values()

    def _weights(self, arrays):
        kind = self._net.kind
        kernel, recurrent, bias = (
            in_order(arrays[name], GATES[kind], _TORCH_GATES[kind]) for name in _WEIGHTS
        )
        # Its LSTM, too, has a bias for the state; one of the two is enough.
        of_input, of_state = (bias, np.zeros_like(bias)) if kind == "LSTM" else bias
        return {
            "weight_ih_l0": kernel.T,
            "weight_hh_l0": recurrent.T,
            "bias_ih_l0": of_input,
            "bias_hh_l0": of_state,
        }

    def _call(self):
        training = self._net.work == TRAINING
        with self._torch.set_grad_enabled(training):
            states = tuple(self._states) if len(self._states) > 1 else self._states[0]
            h, _ = self._layer(self._x, states)
            return h, self._torch.autograd.grad(h, self._sources, self._h_grad) if training else ()

    def run(self):
        """One call."""
        self._call()

    def results(self):
        """Outputs and gradients, named and laid out as `bench.peers.nets` says."""
        h, gradients = self._call()
        found = {"h": h.detach().numpy()}
        if self._net.work != TRAINING:
            return found
        states = _states(self._net)
        named = dict(zip(("x", *states, *self._names), (g.numpy() for g in gradients)))
        found["x_grad"] = named["x"]
        found.update((name + "_grad", named[name][0]) for name in states)

        def ours(array):
            return in_order(array, _TORCH_GATES[self._net.kind], GATES[self._net.kind])

        found["kernel_grad"] = ours(named["weight_ih_l0"].T)
        found["recurrent_grad"] = ours(named["weight_hh_l0"].T)
        biases = [ours(named[name]) for name in ("bias_ih_l0", "bias_hh_l0")]
        found["bias_grad"] = biases[0] if self._net.kind == "LSTM" else np.stack(biases)
        return found
