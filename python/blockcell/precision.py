"""How precise matrix products of the library's kernels are."""

import ctypes
from typing import Any, Optional

from blockcell import loader

LEVELS = ("highest", "high", "medium")
"""In the order of the library's numbers."""

VARIABLE = "BLOCKCELL_FLOAT32_MATMUL_PRECISION"


def set_float32_matmul_precision(precision: str) -> None:
    """Sets the precision of float32 matrix products for all kernels of this process.

    It applies to the products of every op of the library, forward and backward, from the next call
    on. States, equations, sums and weights stay float32. Half and TensorFlow's ops do not change.
    Loads the library if it is not loaded.

    The results of one level are bit-identical for any number of threads. Where a lower level is
    used depends only on the level, the op and the shape.

    Args:
      precision: One of these, as in PyTorch:

        * `"highest"`: products in float32. This is the default.
        * `"high"`: factors as sums of two bfloat16 numbers. Not supported on any processor yet: it
          falls back to `"highest"`.
        * `"medium"`: factors rounded to bfloat16, which has 8 significant bits (float32: 24), on
          processors with AVX512-BF16 or AMX. With AVX-512 or AVX2 only, large weights of few rows
          are rounded. Falls back to `"highest"` where it is not faster: see the keys
          `float32_matmul_runs` and `runs_in_bfloat16` of `info()`.

    Raises:
      ValueError: There is no such level.
    """
    check(precision)
    _call(LEVELS.index(precision))


def get_float32_matmul_precision() -> str:
    """Returns the level that was set by `set_float32_matmul_precision`.

    The default is the value of the environment variable `BLOCKCELL_FLOAT32_MATMUL_PRECISION`. If
    it is not set, the default is `"medium"` if `ONEDNN_DEFAULT_FPMATH_MODE` or
    `TF_SET_ONEDNN_FPMATH_MODE` allows oneDNN to use bfloat16, and otherwise `"highest"`. Loads the
    library if it is not loaded.
    """
    return LEVELS[_call(-1)]


def check(precision: str) -> None:
    """Checks that there is such a level.

    Args:
      precision: What is to be one.

    Raises:
      ValueError: There is none.
    """
    if precision not in LEVELS:
        raise ValueError(
            f"precision must be one of {', '.join(map(repr, LEVELS))}, got {precision!r}"
        )


_function: Optional[Any] = None


def _call(place: int) -> int:
    global _function
    if _function is None:
        _function = ctypes.CDLL(loader.path()).blockcell_float32_matmul_precision
        _function.argtypes, _function.restype = [ctypes.c_int32], ctypes.c_int32
    return _function(place)
