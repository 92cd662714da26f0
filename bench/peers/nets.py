"""What is compared: one layer of LSTM or GRU on a sequence, with the same weights everywhere.

Weights and gradients are exchanged as Keras has them: `kernel` [input, gates * cell], `recurrent`
[cell, gates * cell] and `bias`, with the gates of `GATES`, one block of columns after the other.
The bias of a GRU has two rows, one for the input and one for the state, because the reset gate is
applied after the product (`reset_after`, as in PyTorch and cuDNN).
"""

from typing import Dict, NamedTuple, Tuple

import numpy as np

from blockcell_tools.bench.ops import Workload
from blockcell_tools.bench.tables import BLOCK_GRU_OPS, OPS

GATES = {"LSTM": ("i", "f", "c", "o"), "GRU": ("z", "r", "h")}
"""Keras's order of the gates: input, forget, candidate, output; update, reset, candidate."""

FORWARD, TRAINING, INFERENCE = "forward", "forward+backward", "inference"
"""What a call does: compute h of all steps; or that, and all gradients given that of h.

Inference is forward without the cost of a call of TensorFlow: calls of ours are chained in one run
of a session, each one's h the next one's x. Weights are constants, as of a frozen graph.
"""

SERVING, CHANGING = "serving", "changing"
"""The same with weights in variables: those that nobody writes, as of a SavedModel, whose packed
copies are kept; and those that may be others in each call."""

INT8 = "int8"
"""Inference with weights in int8: `_blockcell_weights`, and ONNX Runtime's `quantize_dynamic`."""

CHAINED = (INFERENCE, SERVING, CHANGING, INT8)
"""What is measured in chains of calls."""

LARGEST_ERROR_OF_INT8 = 0.1
"""Scaled, of ours against float64."""

WORKS = (FORWARD, TRAINING, *CHAINED)

RIVALS = {
    FORWARD: ("stock", "keras", "torch"),
    TRAINING: ("stock", "keras", "torch"),
    **dict.fromkeys((INFERENCE, SERVING, CHANGING), ("onnxruntime",)),
    INT8: ("onnxruntime_int8",),
}
"""All that ours are compared with, by the work."""

MOST_CALLS, CHAIN_SECONDS = 20, 0.05
"""Calls of a chain, and how long one need not take longer than."""


class Net(NamedTuple):
    """A layer, what a call of it does, and its sizes."""

    kind: str
    work: str
    time: int
    batch: int
    input_size: int
    cell_size: int

    @property
    def sides(self) -> Tuple[str, ...]:
        """Who has the layer, ours first.

        TensorFlow has no op for a sequence of a GRU, and ONNX Runtime none of one in int8.
        """
        without = {("GRU", "stock"), ("GRU", "onnxruntime_int8")}
        rivals = RIVALS[self.work]
        return ("ours", *(name for name in rivals if (self.kind, name) not in without))

    @property
    def case(self) -> Workload:
        """The same on our ops."""
        ops = OPS if self.kind == "LSTM" else BLOCK_GRU_OPS
        name = {"LSTM": "BlockLSTM", "GRU": "BlockGRU"}[self.kind]
        op = ops[name + ("+Grad" if self.work == TRAINING else "")]
        return Workload(op, "float32", False, *self[2:])

    def __str__(self) -> str:
        """All of it, in words."""
        return f"{self.kind} {self.work} {self.case.shape}"

    def arrays(self, seed: int) -> Dict[str, np.ndarray]:
        """Inputs, weights and the gradient of h, by name."""
        random = np.random.RandomState(seed)
        width = len(GATES[self.kind]) * self.cell_size
        scale = 1.0 / np.sqrt(self.input_size + self.cell_size)
        state = (self.batch, self.cell_size)
        arrays = {
            "x": random.uniform(-1.0, 1.0, (self.time, self.batch, self.input_size)),
            "h_prev": random.uniform(-1.0, 1.0, state),
            "kernel": random.uniform(-scale, scale, (self.input_size, width)),
            "recurrent": random.uniform(-scale, scale, (self.cell_size, width)),
            "bias": random.uniform(-1.0, 1.0, (width,) if self.kind == "LSTM" else (2, width)),
            "h_grad": random.standard_normal((self.time, *state)),
        }
        if self.kind == "LSTM":
            arrays["cs_prev"] = random.uniform(-1.0, 1.0, state)
        return {name: array.astype(np.float32) for name, array in arrays.items()}


def split(gates, array):
    """The gates' blocks of the last dimension, by name."""
    return dict(zip(gates, np.split(array, len(gates), axis=-1)))


def joined(gates, blocks):
    """What `split` took apart."""
    return np.concatenate([blocks[gate] for gate in gates], axis=-1)


def in_order(array, gates, order):
    """An array whose blocks of the last dimension are in another order.

    Args:
      array: Its last dimension is as many blocks as there are gates.
      gates: The gates' names as they are.
      order: As they shall be.
    """
    return joined(order, split(gates, array))
