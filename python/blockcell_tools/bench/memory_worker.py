"""The process that measures memory, and talks as the other worker does.

The parent (`blockcell_tools.bench.memory`) writes what to load, then a case and a side, or a case
whose packed weights are measured.
"""

import contextlib
import ctypes
import gc
from pathlib import Path

import blockcell
from blockcell import loader
from blockcell.op_table import WEIGHT
from blockcell_tools.bench.graphs import SIDES, LabelError, Pair
from blockcell_tools.bench.machine import resident
from blockcell_tools.bench.tables import decode
from blockcell_tools.bench.worker import answer, start

STEPS = 3
"""Steps among which the peak is looked for."""


def serve(messages):
    """Measures a case."""
    job = next(messages)
    sides, about = start(job)
    yield about
    for message in messages:
        case = decode(message["case"])
        yield packed(sides, case) if "packed" in message else step(sides, case, message["side"])


def packed(sides, case):
    """The memory of constant weights and of their copies, as fields of `Packed`."""
    from blockcell import node_attributes

    arrays = case.inputs(1)
    constants = [tensor.name for tensor in case.op.inputs if tensor.kind == WEIGHT]
    matrices = [arrays[name] for name in constants if arrays[name].ndim == 2]
    found = {"weights": sum(matrix.nbytes for matrix in matrices)}
    attributes = {"use_peephole": case.use_peephole}
    for weights in loader.WEIGHTS:
        nodes = {node_attributes.WEIGHTS: weights}
        gc.collect()
        before = blockcell.info()["kept_weight_bytes"]
        with Pair(sides, case.op, arrays, attributes, constants, nodes=nodes) as pair:
            pair.outputs(SIDES[-1])
            found[weights] = blockcell.info()["kept_weight_bytes"] - before
    return found


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
