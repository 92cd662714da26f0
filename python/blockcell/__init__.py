"""TensorFlow's block RNN ops, computed by kernels written in Rust.

`load` finds the library built for the running TensorFlow and loads it; from then on the stock ops
run on its kernels, with gradients of first and second order. `info` tells what is in use. Importing
this package does not import TensorFlow.
"""

from blockcell.loader import LibraryError, LibraryNotFoundError, find_library, info, load

__version__ = "0.1.0"
__all__ = ["LibraryError", "LibraryNotFoundError", "find_library", "info", "load"]
