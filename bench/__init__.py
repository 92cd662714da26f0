"""Benchmarks of the project that compare more than TensorFlow's kernels and ours.

Those two are compared by the command `blockcell bench`, in the package, whose processes, timing,
tables and plots are used here, too.

    inference, predict, cudnn, zoo   comparisons in the frame of `comparison`; nets: what nets share
    peers              a comparison with more rivals, and with the machine's limits
    passes             the time that the graph passes take
    markers            parts of pages that programs write
    figures            the page of figures, made of what all of them write
"""

import sys
from pathlib import Path

# The package, if it is not installed.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
