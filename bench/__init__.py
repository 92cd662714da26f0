"""Benchmarks of the project that compare more than TensorFlow's kernels and ours.

Those two are compared by the command `blockcell bench`, in the package.
"""

import sys
from pathlib import Path

# The package, if it is not installed.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
