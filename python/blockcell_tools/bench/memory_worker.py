"""The process that measures the peak memory of one side, and talks as the other worker does.

The parent (`blockcell_tools.bench.memory`) writes what to load, then a case and a side.
"""

import contextlib
import ctypes
import gc
from pathlib import Path

import blockcell
from blockcell_tools.bench.graphs import LabelError, Pair
from blockcell_tools.bench.machine import resident
from blockcell_tools.bench.tables import decode
from blockcell_tools.bench.worker import answer, start

STEPS = 3
"""Steps among which the peak is looked for."""


def serve(messages):
    """Measures a case on one side."""
    job = next(messages)
    sides, about = start(job)
    yield about
    for message in messages:
        yield step(sides, decode(message["case"]), message["side"])


def step(sides, case, side):
    """The peak of some steps, as fields of `Peak`."""
    attributes = {"use_peephole": case.use_peephole}
    small = case._replace(time=2, batch=1, input_size=4, cell_size=4)
    # What is set up once, such as threads, is not a step's.
    with Pair(sides, small.op, small.inputs(1), attributes) as pair:
        pair.chain(side, 1)()
    with Pair(sides, case.op, case.inputs(1), attributes) as pair:
        run = pair.chain(side, 1)
        gc.collect()
        # Memory that was freed but not given back would hide as much of the peak.
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL("libc.so.6").malloc_trim(0)
        allocated_before = _allocated(sides.tf)
        before = resident()["VmRSS"]
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # VmHWM starts anew
        for _ in range(STEPS):
            run()
        peak = resident()["VmHWM"] - before
        allocated_after = _allocated(sides.tf)
        return {
            "before": before,
            "peak": peak,
            "allocated": allocated_after and allocated_after["peak"] - allocated_before["current"],
            "kernels": pair.traced_bytes(side),
        }


def _allocated(tf):
    """What TensorFlow's allocator has given out, the peak of which starts anew, if it tells."""
    memory = getattr(tf.config, "experimental", None)
    if not hasattr(memory, "reset_memory_stats"):
        return None
    try:
        found = memory.get_memory_info("CPU:0")
        memory.reset_memory_stats("CPU:0")
    except (ValueError, tf.errors.OpError):
        return None
    return found


if __name__ == "__main__":
    answer(serve, (LabelError, blockcell.LibraryError))
