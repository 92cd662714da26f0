"""What the maker of the graphs and the trainer must agree on.

The maker (``make_graphs.py``) stores tensors and operations under the collection keys below; the
trainer (``training.py``) finds them there. No name of a node is written down anywhere else.
"""

import pathlib
from collections import OrderedDict
from typing import NamedTuple

GRAPHS = pathlib.Path(__file__).resolve().parent / "graphs"
"""Folder of the MetaGraphs."""
SUFFIX = ".meta.gz"
"""How the names of their files end."""

LAYERS = 2
"""Recurrent layers."""
GRAPH_SEED = 20140908
"""Seed of the graph. Every random op takes its own seed from it: all random numbers are fixed."""
LEARNING_RATE = 0.1
"""The learning rate of gradient descent. Published is 1, at which rounding errors grow until they
show in the losses (README)."""


class Size(NamedTuple):
    """One of the published sizes of the model, or a size of one's own."""

    name: str
    """Used in file names."""
    units: int
    """Units of a layer, and width of a word's embedding (cell_size and input_size)."""
    time: int
    """Words of each stream in a training step."""
    keep: float
    """Share of the values that dropout keeps; 1 for no dropout."""
    range: float
    """Initial weights are drawn between minus this and this."""
    clip: float
    """The global norm to which the gradients are clipped."""
    batch: int = 20
    """Streams of text read side by side."""
    vocabulary: int = 10000
    """Number of different words."""
    steps: int = 5
    """Training steps of a turn, unless the runner is told otherwise."""


TINY = Size("tiny", 24, 6, 0.5, range=0.1, clip=5.0, batch=5, vocabulary=300, steps=4)
"""Not published: for tests."""
SMALL = Size("small", 200, 20, 1.0, range=0.1, clip=5.0, steps=10)
MEDIUM = Size("medium", 650, 35, 0.5, range=0.05, clip=5.0, steps=3)
LARGE = Size("large", 1500, 35, 0.35, range=0.04, clip=10.0, steps=1)
SIZES = OrderedDict((size.name, size) for size in (TINY, SMALL, MEDIUM, LARGE))
"""Sizes by name; the graphs of the last are not committed."""

CELLS = OrderedDict(
    [
        ("lstm_block_cell", "LSTMBlockCell in static_rnn"),
        ("gru_block_cell", "GRUBlockCellV2 in dynamic_rnn"),
        ("lstm_block_fused_cell", "LSTMBlockFusedCell"),
        ("basic_lstm_cell", "BasicLSTMCell in static_rnn"),
        ("gru_cell", "GRUCell in dynamic_rnn"),
    ]
)
"""What people call the kinds of cell, by name in file names."""

INPUTS = "word_lm/inputs"
"""Collection of a placeholder: words read, int32 [batch, time]."""
TARGETS = "word_lm/targets"
"""Collection of a placeholder: words to predict, int32 [batch, time]."""
LOGITS = "word_lm/logits"
"""Collection of a tensor: float32 [time * batch, vocabulary]."""
LOSS = "word_lm/loss"
"""Collection of a tensor: mean cross entropy before the update in nats a word, float32 scalar."""
TRAIN_OP = "word_lm/train_op"
"""Collection of an operation: one training step. The next one goes on from its states."""
INIT_OP = "word_lm/init_op"
"""Collection of an operation: sets the initial values of all variables."""


def meta(cell, size, folder=GRAPHS):
    """Returns the path of the MetaGraph of a kind of cell (a key of `CELLS`) and a size's name."""
    return folder / f"{cell}-{size}{SUFFIX}"


def title(path):
    """Returns what people call the graph in a file."""
    cell, _, size = stem(path).partition("-")
    return f"{CELLS.get(cell, cell)}, {size}" if size else cell


def stem(path):
    """Returns the name of a graph's file without `SUFFIX`."""
    return path.name[: -len(SUFFIX)] if path.name.endswith(SUFFIX) else path.name
