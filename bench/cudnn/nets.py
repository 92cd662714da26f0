"""What is compared: a network of LSTM or GRU layers, with the same weights everywhere.

Weights and their gradients are exchanged in the order of cuDNN's buffer.
"""

from typing import Dict, NamedTuple

import numpy as np

from bench.nets import sizes
from blockcell_tools.reference import cudnn

FORWARD, TRAINING = "forward", "forward+backward"
"""What a call does: compute the output; or that, and all gradients given that of the output."""


class Net(NamedTuple):
    """A network, what a call of it does, and its sizes. Initial states are zero."""

    mode: str
    """"lstm" or "gru"."""
    work: str
    layers: int
    directions: int
    time: int
    batch: int
    input_size: int
    units: int

    @property
    def network(self) -> cudnn.Network:
        """The same for the oracle."""
        return cudnn.Network(self.mode, self.units, self.input_size, self.layers, self.directions)

    shape = property(sizes)

    def __str__(self) -> str:
        """All of it, in words."""
        return f"{self.mode} {self.layers}x{self.directions} {self.work} {self.shape}"

    def arrays(self, seed: int) -> Dict[str, np.ndarray]:
        """Input, parameters and the gradient of the output, by name."""
        random = np.random.RandomState(seed)
        size = cudnn.params_size(self.network)
        weights, biases = cudnn.to_canonical(self.network, random.uniform(-1.0, 1.0, size))
        weights = [w / np.sqrt(w.shape[1] + self.units) for w in weights]
        arrays = {
            "input": random.uniform(-1.0, 1.0, (self.time, self.batch, self.input_size)),
            "params": cudnn.to_params(self.network, weights, biases),
            "output_grad": random.standard_normal(
                (self.time, self.batch, self.directions * self.units)
            ),
        }
        return {name: array.astype(np.float32) for name, array in arrays.items()}
