"""What the makers of the graphs and the trainer must agree on.

Those who make a graph (``make_graphs.py``, ``programs.py``) store tensors and operations under the
collection keys below; the trainer (``training.py``) finds them there. No name of a node is written
down anywhere else.
"""

import pathlib
from typing import NamedTuple, Optional, Tuple

from common.sessions import GRADIENTS, LIBRARY, PACKAGED, TENSORFLOW

GRAPHS = pathlib.Path(__file__).resolve().parent / "graphs"
"""Folder of the committed MetaGraphs."""

SYMBOLS = 256
"""Symbols of the language: the values of a byte."""
BATCH = 64
"""Streams or lines of text read side by side (batch of the cell)."""
TIME = 25
"""Symbols of each stream in one training step."""
LINE_TIME = 40
"""Symbols of a line of text at most, where rows are lines."""
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
SEEDS = {"embedding": 1, "recurrent": 2, "logits": 3}
"""Seeds of initial values, where a committed graph has to have those of a program."""

HIGHEST, LOWER = "highest", ("high", "medium")
"""How precise the library's products may be."""

INPUTS = "char_lm/inputs"
"""Collection of a placeholder: symbols read, int32 [BATCH, TIME or LINE_TIME]."""
TARGETS = "char_lm/targets"
"""Collection of a placeholder: symbols to predict, int32, of the shape of the inputs."""
LENGTHS = "char_lm/lengths"
"""Collection of a placeholder where rows are lines: symbols of each, int64 [BATCH]."""
LOSS = "char_lm/loss"
"""Collection of a tensor: mean cross entropy before the update in nats a byte, float32 scalar."""
TRAIN_OP = "char_lm/train_op"
"""Collection of an operation: one training step."""
INIT_OP = "char_lm/init_op"
"""Collection of an operation: sets the initial values of all variables."""
CHECKED = "char_lm/checked"
"""Collection of a variable whose gradient finite differences are to check, and that gradient."""


class Setting(NamedTuple):
    """One of the ways in which a model is trained, each in a process of its own."""

    name: str
    """Short name, used in file names."""
    title: str
    """The name that people read."""
    loads: str
    """TENSORFLOW, LIBRARY, GRADIENTS or PACKAGED, of `common.sessions`."""
    ops: Tuple[str, str]
    """Types of the forward op and of the op that computes its gradient, in the graph that runs."""
    program: Optional[str] = None
    """The function of `programs` that builds the graph; None for the committed MetaGraph."""


class Model(NamedTuple):
    """One of the language models."""

    name: str
    """Short name, used in file names."""
    title: str
    """The name that people read."""
    stock: Setting
    """The training on TensorFlow's kernels."""
    blockcell: Setting
    """The training on blockcell's kernels, whose losses must be the same."""
    contrast: Optional[Setting] = None
    """A training whose losses may differ."""
    lines: bool = False
    """Whether rows are lines of text, of different lengths."""
    refused: bool = False
    """Whether TensorFlow alone cannot run the committed MetaGraph on a CPU."""

    @property
    def meta(self) -> pathlib.Path:
        """The committed MetaGraph."""
        return GRAPHS / f"{self.name}.meta"

    @property
    def settings(self) -> Tuple[Setting, ...]:
        """All trainings."""
        return (self.stock, self.blockcell) + ((self.contrast,) if self.contrast else ())


def _graph(name, title, *ops):
    """A model whose graph TensorFlow 1.15 made."""
    return Model(
        name,
        title,
        stock=Setting("stock", "stock kernels", TENSORFLOW, ops),
        blockcell=Setting("blockcell", "blockcell", LIBRARY, ops),
    )


GRU = _graph("gru_block_cell", "GRUBlockCellV2", "GRUBlockCell", "GRUBlockCellGrad")
LSTM = _graph(
    "lstm_block_cell", "LSTMBlockCell with peepholes", "LSTMBlockCell", "LSTMBlockCellGrad"
)
FUSED = _graph(
    "lstm_block_fused_cell", "LSTMBlockFusedCell with peepholes", "BlockLSTM", "BlockLSTMGrad"
)
CUDNN = Model(
    "cudnn_lstm",
    "CudnnLSTM, made for GPUs",
    # What people do without a GPU: a cell that computes the same, step by step.
    stock=Setting(
        "stock",
        "stock kernels",
        GRADIENTS,
        ("LSTMBlockCell", "LSTMBlockCellGrad"),
        "lstm_block_cell",
    ),
    blockcell=Setting("blockcell", "blockcell", LIBRARY, ("CudnnRNN", "CudnnRNNBackprop")),
    refused=True,
)
PLAIN = Model(
    "basic_lstm_cell",
    "BasicLSTMCell, a plain cell",
    # Its steps are made of small ops: the most telling ones are here.
    stock=Setting("stock", "stock kernels", TENSORFLOW, ("Tanh", "TanhGrad")),
    blockcell=Setting(
        "blockcell", "blockcell", LIBRARY, ("BlockcellLSTMCell", "BlockcellLSTMCellGrad")
    ),
)
MADE_BY_1_15 = (GRU, LSTM, FUSED, CUDNN, PLAIN)
"""The models whose graphs are committed."""

_V2 = ("BlockLSTMV2", "BlockLSTMGradV2")
V2 = Model(
    "block_lstm_v2",
    "BlockLSTMV2",
    stock=Setting("stock", "stock kernels", GRADIENTS, _V2, "block_lstm_v2"),
    blockcell=Setting("blockcell", "blockcell", PACKAGED, _V2, "block_lstm_v2"),
    # TensorFlow's gradient of BlockLSTMV2 is that of BlockLSTM, whose weights have another order.
    contrast=Setting(
        "tensorflow",
        "TensorFlow alone",
        TENSORFLOW,
        ("BlockLSTMV2", "BlockLSTMGrad"),
        "block_lstm_v2",
    ),
)
ROWS = Model(
    "block_gru",
    "BlockGRU on lines of text",
    stock=Setting(
        "stock", "stock kernels", GRADIENTS, ("GRUBlockCell", "GRUBlockCellGrad"), "gru_block_cell"
    ),
    blockcell=Setting(
        "blockcell", "blockcell", PACKAGED, ("BlockGRU", "BlockGRUGrad"), "block_gru"
    ),
    lines=True,
)
MODELS = (*MADE_BY_1_15, V2, ROWS)
