"""How precise matrix products of the library's kernels are."""

import ctypes
from typing import Any, Optional

from blockcell import loader

LEVELS = ("highest", "high", "medium")
"""In the order of the library's numbers."""

VARIABLE = "BLOCKCELL_FLOAT32_MATMUL_PRECISION"


def set_float32_matmul_precision(precision: str) -> None:
    """Chooses how precise matrix products in float32 are, for all kernels of this process.

    It concerns the products of every op of the library, forward and backward, from the next call
    on. States, equations, sums and weights stay float32, and half is computed as before. Ops of
    TensorFlow do not change. Loads the library if that was not done.

    The results of one level are the same bit for bit whatever the number of threads. Which level
    runs depends on it and on shapes alone.

    Args:
      precision: One of these, as in PyTorch:

        * `"highest"`: products in float32. This is the default.
        * `"high"`: factors as sums of two numbers in bfloat16. No processor is served so yet, and
          `"highest"` runs.
        * `"medium"`: factors are rounded to bfloat16, which has 8 bits where float32 has 24, on
          processors with AVX512-BF16. Others with AVX-512 or AVX2 round large weights of few
          rows, and nothing else. Where that is not faster, `"highest"` runs. The keys
          `float32_matmul_runs` and `runs_in_bfloat16` of `info()` tell.

    Raises:
      ValueError: There is no such level.
    """
    check(precision)
    _call(LEVELS.index(precision))


def get_float32_matmul_precision() -> str:
    """Returns the level that `set_float32_matmul_precision` has chosen.

    By default it is that of the environment variable `BLOCKCELL_FLOAT32_MATMUL_PRECISION`. Where
    that is not set, it is `"medium"` if oneDNN may use bfloat16, by `ONEDNN_DEFAULT_FPMATH_MODE` or
    `TF_SET_ONEDNN_FPMATH_MODE`, and otherwise `"highest"`. Loads the library if that was not done.
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
            f"precision is {precision!r}, but has to be one of {', '.join(map(repr, LEVELS))}"
        )


_function: Optional[Any] = None


def _call(place: int) -> int:
    global _function
    if _function is None:
        _function = ctypes.CDLL(loader.path()).blockcell_float32_matmul_precision
        _function.argtypes, _function.restype = [ctypes.c_int32], ctypes.c_int32
    return _function(place)
