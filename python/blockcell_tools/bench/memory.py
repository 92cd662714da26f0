"""Peak memory of a training step, each side in a process of its own."""

from typing import Dict, NamedTuple, Optional, Tuple

from blockcell_tools.bench.graphs import SIDES
from blockcell_tools.bench.ops import Workload
from blockcell_tools.bench.tables import OPS, encode
from blockcell_tools.bench.workers import Worker

OP = "BlockLSTM+Grad"
"""The op whose step is measured: forward and backward."""


class Peak(NamedTuple):
    """What a training step takes, in bytes."""

    side: str
    shape: str
    threads: int
    before: int
    """Resident memory before the first step: TensorFlow, the library, inputs and weights."""
    peak: int
    """Most resident memory above that."""
    allocated: Optional[int]
    """Most that TensorFlow's allocator had given out above what it had before; None in 1.15."""
    kernels: Dict[str, Tuple[int, int]]
    """Of each kernel, what that allocator gave it at its peak, and what outlives the kernel."""


def measure(shape, threads, library, advance):
    """Measures both sides.

    Args:
      shape: A `blockcell_tools.bench.shapes.Shape` of a sequence.
      threads: The number of intra-op threads.
      library: The library's file, or None.
      advance: Called when a side has been measured.

    Returns:
      A list of `Peak`; empty if the library does not have the kernels.

    Raises:
      WorkerError: A side did not run.
    """
    case = Workload(OPS[OP], "float32", False, *shape)
    peaks = []
    for side in SIDES:
        with Worker("blockcell_tools.bench.memory_worker") as worker:
            about = worker.ask({"threads": threads, "library": library})
            if {kernel.name for kernel in case.op.kernels} <= set(about["ops"]):
                found = worker.ask({"case": encode(case), "side": side})
                peaks.append(Peak(side=side, shape=case.shape, threads=threads, **found))
        advance()
    return peaks
