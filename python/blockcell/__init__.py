"""TensorFlow's block RNN ops, computed by kernels written in Rust.

`load` finds the library built for the running TensorFlow and loads it. The stock ops then
run on its kernels, with gradients of first and second order. `info` returns what is in use.
`set_float32_matmul_precision` trades precision for speed, and `int8_errors` measures the errors of
int8 weights. `block_gru` and `block_gru_grad` are the library's own ops. The functions
`..._from_keras` and `..._to_keras` convert weights between Keras's layers and the ops.
`blockcell.keras.enable` runs Keras's layers on the kernels; `blockcell.rnn` has the block cells of
`tf.contrib.rnn`. Importing this package imports neither TensorFlow nor Keras.
"""

import importlib
from typing import Any

from blockcell.block_gru_ops import block_gru, block_gru_grad
from blockcell.int8 import int8_errors
from blockcell.keras_weights import gru_from_keras, gru_to_keras, lstm_from_keras, lstm_to_keras
from blockcell.loader import LibraryError, LibraryNotFoundError, find_library, info, load
from blockcell.precision import get_float32_matmul_precision, set_float32_matmul_precision
from blockcell.version import __version__

__all__ = [
    "LibraryError",
    "LibraryNotFoundError",
    "__version__",
    "block_gru",
    "block_gru_grad",
    "find_library",
    "get_float32_matmul_precision",
    "gru_from_keras",
    "gru_to_keras",
    "info",
    "int8_errors",
    "load",
    "lstm_from_keras",
    "lstm_to_keras",
    "set_float32_matmul_precision",
]


def __getattr__(name: str) -> Any:
    if name in ("keras", "rnn"):
        return importlib.import_module(f"blockcell.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
