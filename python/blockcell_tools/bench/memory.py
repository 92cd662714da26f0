"""Peak memory of a training step, each side in a process of its own, and of packed weights."""

from typing import Dict, NamedTuple, Optional, Tuple

from blockcell.op_table import BLOCK_LSTM
from blockcell_tools.bench.graphs import SIDES
from blockcell_tools.bench.ops import Workload
from blockcell_tools.bench.tables import OPS, encode
from blockcell_tools.bench.workers import Worker

OP = "BlockLSTM+Grad"
"""The op whose step is measured: forward and backward."""
PACKED_OP = BLOCK_LSTM
"""The op whose packed weights are measured."""


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


class Packed(NamedTuple):
    """The memory of constant weights and of their packed copies, in bytes."""

    op: str
    shape: str
    threads: int
    weights: int
    """The matrices in float32."""
    float32: int
    """The packed copies that a kernel keeps in float32."""
    int8: int
    """Those in int8."""


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


def measure_packed(shape, threads, library):
    """Measures the packed copies of constant weights.

    Args:
      shape: As of `measure`.
      threads: The same.
      library: The same.

    Returns:
      A `Packed`.

    Raises:
      WorkerError: The process did not run.
    """
    case = Workload(OPS[PACKED_OP], "float32", False, *shape)
    with Worker("blockcell_tools.bench.memory_worker") as worker:
        worker.ask({"threads": threads, "library": library})
        found = worker.ask({"case": encode(case), "packed": True})
    return Packed(op=PACKED_OP, shape=case.shape, threads=threads, **found)
