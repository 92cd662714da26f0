"""Digests of our kernels' results, for `test_threads`: one number of threads per process."""

import hashlib
import os
import pathlib

import tensorflow as tf

import blockcell
from blockcell import op_table
from blockcell.op_table import SEQUENCES
from blockcell_tools.reference.inputs import inputs_of
from helpers import grids, kernels

# From what stays on one thread to what is worth many.
CELL_SIZES = [(3, 2, 4), (33, 65, 130), (64, 128, 256), (257, 31, 63), (1, 512, 512), (512, 1, 99)]
SEQUENCE_SIZES = [(3, 2, 4, 5), (33, 65, 130, 4), (257, 31, 63, 2), (1, 256, 256, 3), (2, 3, 5, 90)]


def prepare():
    blockcell.load()


def digests():
    """Runs every case twice; returns the digests of the results, one per case."""
    threads = int(os.environ["BLOCKCELL_TEST_THREADS"])
    config = tf.compat.v1.ConfigProto(
        intra_op_parallelism_threads=threads, inter_op_parallelism_threads=1
    )
    found = {}
    for op, dtype, on in op_table.variants():
        with tf.Graph().as_default() as graph, kernels.labelled():
            inputs = inputs_of(op, 1, 1, 1, dtype=dtype, **on)
            feeds = {n: tf.compat.v1.placeholder(value.dtype) for n, value in inputs.items()}
            fetches = list(kernels.call(op, feeds, **on).values())
        with tf.compat.v1.Session(graph=graph, config=config) as session:
            for sizes in SEQUENCE_SIZES if op in SEQUENCES else CELL_SIZES:
                inputs = inputs_of(op, *sizes, dtype=dtype, **on)
                fed = {feeds[name]: value for name, value in inputs.items()}
                runs = {_digest(session.run(fetches, fed)) for _ in range(2)}
                assert len(runs) == 1, f"{op} {sizes}: results differ from run to run"
                found[f"{grids.name(op, dtype, on)} {sizes}"] = runs.pop()
    return found


def digests_of_deterministic_ops():
    """As above, where TensorFlow refuses whatever it knows to be nondeterministic."""
    tf.config.experimental.enable_op_determinism()
    return digests()


def processors():
    """Returns the sets of processors that the threads of this process may run on, as text."""
    found = set()
    for status in pathlib.Path("/proc/self/task").glob("*/status"):
        lines = status.read_text().splitlines()
        found.update(line for line in lines if line.startswith("Cpus_allowed_list"))
    return sorted(found)


def _digest(outputs):
    return hashlib.sha256(b"".join(output.tobytes() for output in outputs)).hexdigest()
