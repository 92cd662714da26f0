"""What the graph generator and the trainer must agree on.

The generator (``make_graphs.py``) stores tensors and operations under the collection keys below;
the trainer (``worker.py``) finds them there. No name of a node is written down anywhere else.
"""

import pathlib
from typing import NamedTuple

GRAPHS = pathlib.Path(__file__).resolve().parent / "graphs"
"""Folder of the committed MetaGraphs."""

SYMBOLS = 256
"""Symbols of the language: the values of a byte."""
BATCH = 64
"""Streams of text read side by side (batch of the cell)."""
TIME = 25
"""Symbols of each stream in one training step."""
INPUT_SIZE = 128
"""Width of a symbol's embedding (input_size of the cell)."""
UNITS = 256
"""Units of the recurrent layer (cell_size of the cell)."""
FORGET_BIAS = 0.0
"""What the LSTM adds to its forget gate."""

# The gradients' rounding differs between kernels, and training amplifies any difference. The
# numbers above and below keep the amplification small, so that the losses can be compared: short
# windows, no forget bias, and a larger epsilon for Adam (the default of 1e-8 makes a full step of
# the rounding error of a tiny gradient).
LEARNING_RATE = 2e-3
"""Adam's learning rate."""
ADAM_EPSILON = 1e-5
"""Adam's epsilon."""
CLIP_NORM = 1.0
"""The global norm to which the gradients are clipped."""
GRAPH_SEED = 20191018
"""Seed of the graph. Every random op takes its own seed from it, so initial values are fixed."""

INPUTS = "char_lm/inputs"
"""Collection of a placeholder: symbols read, int32 [BATCH, TIME]."""
TARGETS = "char_lm/targets"
"""Collection of a placeholder: symbols to predict, int32 [BATCH, TIME]."""
LOSS = "char_lm/loss"
"""Collection of a tensor: mean cross entropy before the update in nats a byte, float32 scalar."""
TRAIN_OP = "char_lm/train_op"
"""Collection of an operation: one training step."""
INIT_OP = "char_lm/init_op"
"""Collection of an operation: sets the initial values of all variables."""


class Model(NamedTuple):
    """One of the training graphs."""

    name: str
    """Short name, used in file names."""
    title: str
    """The name that people read."""
    gradient: str
    """Type of the op that computes the gradient of the cell."""

    @property
    def meta(self) -> pathlib.Path:
        """The committed MetaGraph."""
        return GRAPHS / f"{self.name}.meta"


GRU = Model("gru_block_cell", "GRUBlockCellV2", "GRUBlockCellGrad")
LSTM = Model("lstm_block_cell", "LSTMBlockCell with peepholes", "LSTMBlockCellGrad")
MODELS = (GRU, LSTM)
