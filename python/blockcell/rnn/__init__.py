"""The block cells of `tf.contrib.rnn`, for every TensorFlow from 1.15 to 2.21.

TensorFlow 2 has the ops, but not the Python classes. This package has the classes with the same
constructor arguments, variable names and shapes, so they restore checkpoints of TensorFlow 1.15.
They need neither Keras 2 nor `tf_keras`.

* `GRUBlockCell`, `GRUBlockCellV2` and `LSTMBlockCell` compute a step. Use them in
  `tf.compat.v1.nn.static_rnn`, `dynamic_rnn` and `bidirectional_dynamic_rnn`, or in a custom loop.
* `LSTMBlockFusedCell` and `GRUBlockFusedCell` compute a whole sequence in one op.
* `MultiRNNCell`, `DropoutWrapper` and `LSTMStateTuple` are included because TensorFlow 2.16 and
  later do not have them. `TimeReversedFusedRNN` is that of `tf.contrib.rnn`.

All of them are `tf.Module`s and create their variables by `tf.compat.v1.get_variable`, so they
work eagerly, in a `tf.function` and in graphs of TensorFlow 1. Constructing a cell calls
`blockcell.load()` if it has not been called.
"""

from blockcell.rnn.cells import GRUBlockCell, GRUBlockCellV2, LSTMBlockCell
from blockcell.rnn.fused import GRUBlockFusedCell, LSTMBlockFusedCell, TimeReversedFusedRNN
from blockcell.rnn.states import LSTMStateTuple
from blockcell.rnn.wrappers import DropoutWrapper, MultiRNNCell

__all__ = [
    "DropoutWrapper",
    "GRUBlockCell",
    "GRUBlockCellV2",
    "GRUBlockFusedCell",
    "LSTMBlockCell",
    "LSTMBlockFusedCell",
    "LSTMStateTuple",
    "MultiRNNCell",
    "TimeReversedFusedRNN",
]
