"""TensorFlow in a worker: what it loads, its sessions, and what its traces say."""

import os
import pathlib
import re
import sys
from typing import Dict, NamedTuple, Optional, Tuple

from common import probes

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "python"
"""Where the Python package `blockcell` is."""

TENSORFLOW = "TensorFlow alone"
"""A process that loads nothing."""
LIBRARY = "tf.load_op_library"
"""A process that loads the library, in this one line."""
GRADIENTS = "blockcell.load() with BLOCKCELL_OVERRIDE=0"
"""A process that has the package's Python gradients, and TensorFlow's kernels."""
PACKAGED = "blockcell.load()"
"""A process that has the package's Python gradients, and blockcell's kernels."""


class Ready(NamedTuple):
    """What a worker says of itself before the first step."""

    tensorflow: str
    """Version of TensorFlow."""
    info: Optional[str]
    """What the library's op BlockcellInfo returned, JSON; None without the library."""
    refusals: Dict[str, str]
    """How the kernels of unlabelled nodes refuse a malformed call, by op of TensorFlow."""
    labelled_refusals: Dict[str, str]
    """How the kernels labelled ``blockcell`` refuse it; empty without the library."""


class Trace(NamedTuple):
    """What happened on the CPU in a traced `Session.run`."""

    span: float
    """Seconds from the start of the first op to the end of the last one."""
    ops: Dict[str, Tuple[int, float]]
    """By type of op: how many ran, and the seconds within all of them."""


def quiet(tf):
    """Makes TensorFlow say errors only, and build graphs."""
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
    tf.compat.v1.disable_eager_execution()


def load(tf, loads, library):
    """Loads the library, or nothing.

    Args:
      tf: TensorFlow.
      loads: TENSORFLOW, LIBRARY, GRADIENTS or PACKAGED.
      library: Path of libblockcell.so.

    Returns:
      The module of the library's ops, or None.
    """
    if loads == TENSORFLOW:
        return None
    if loads == LIBRARY:
        return tf.load_op_library(library)  # all that is needed to train with blockcell
    if loads == GRADIENTS:
        os.environ["BLOCKCELL_OVERRIDE"] = "0"
    return load_package(library).load(library)


def load_package(library):
    """Imports the package from the source tree, loads the library and returns the package."""
    sys.path.insert(0, str(PACKAGE))
    import blockcell

    blockcell.load(library)
    return blockcell


def session(tf, threads=0, bfloat16=False):
    """Returns a session for the default graph, on CPUs: the kernels under test are for those.

    The first session of a process sets the size of TensorFlow's pools; later ones share them.

    Args:
      tf: TensorFlow.
      threads: Size of the pool within ops and of the pool across ops; 0 leaves it to TensorFlow.
      bfloat16: Whether Grappler makes products of TensorFlow bfloat16.
    """
    config = tf.compat.v1.ConfigProto(
        device_count={"GPU": 0},
        intra_op_parallelism_threads=threads,
        inter_op_parallelism_threads=threads,
    )
    if bfloat16:
        rewriting = config.graph_options.rewrite_options
        rewriting.auto_mixed_precision_onednn_bfloat16 = type(rewriting).ON
    return tf.compat.v1.Session(config=config)


def ready(tf, module, ops):
    """Returns the `Ready` of this process.

    Args:
      tf: TensorFlow.
      module: What `load` has returned.
      ops: Types of ops; those with a call in `probes.SHAPES` are probed.
    """
    info, labelled = None, {}
    ops = [op for op in ops if op in probes.SHAPES]
    if module is not None:
        with tf.Graph().as_default(), session(tf) as running:
            info = running.run(module.blockcell_info()).decode()
        labelled = {op: probes.refusal(tf, session, op, "blockcell") for op in ops}
    refusals = {op: probes.refusal(tf, session, op) for op in ops}
    return Ready(tf.__version__, info, refusals, labelled)


def collected(graph, key):
    """Returns the only member of a graph's collection."""
    (member,) = graph.get_collection(key)
    return member


def traced(tf, run):
    """Runs something with a full trace.

    Args:
      tf: TensorFlow.
      run: A function that passes its keyword arguments on to `Session.run`.

    Returns:
      What `run` returned, and the `Trace`.
    """
    v1 = tf.compat.v1
    metadata = v1.RunMetadata()
    result = run(options=v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE), run_metadata=metadata)
    return result, _trace(metadata.step_stats)


def _trace(step_stats):
    stats = [
        op
        for device in step_stats.dev_stats
        if "/device:CPU:" in device.device
        for op in device.node_stats
    ]
    first = min(op.all_start_micros for op in stats)
    last = max(op.all_start_micros + op.all_end_rel_micros for op in stats)
    ops = {}
    for op in stats:
        kind = kind_of(op)
        if kind:
            calls, seconds = ops.get(kind, (0, 0.0))
            nanoseconds = op.op_end_rel_nanos - op.op_start_rel_nanos
            ops[kind] = (calls + 1, seconds + nanoseconds * 1e-9)
    return Trace((last - first) * 1e-6, ops)


def kind_of(stats):
    """Returns the type of the op that a trace's `NodeExecStats` are of, or None."""
    # "name = Type(inputs)"; names within function bodies are not those of the graph.
    kind = re.search(r" = (\w+)\(", stats.timeline_label)
    return kind.group(1) if kind else None
