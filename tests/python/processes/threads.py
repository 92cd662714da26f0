"""Digests of our kernels' results, for `test_threads`: one number of threads per process."""

import hashlib
import os

import numpy as np
import tensorflow as tf

import blockcell
import cases
from cases import GRU, LSTM

VARIANTS = [
    (GRU, np.float32, {}),
    (LSTM, np.float32, {"use_peephole": True}),
    (LSTM, np.float32, {"use_peephole": False}),
    (LSTM, np.float16, {"use_peephole": True}),
]
# From what stays on one thread to what is worth many.
SIZES = [(3, 2, 4), (33, 65, 130), (64, 128, 256), (257, 31, 63), (1, 512, 512), (512, 1, 512)]


def prepare():
    blockcell.load()


def digests():
    """Runs every case three times; returns the digests of the results, one per case."""
    threads = int(os.environ["BLOCKCELL_TEST_THREADS"])
    config = tf.compat.v1.ConfigProto(
        intra_op_parallelism_threads=threads, inter_op_parallelism_threads=1
    )
    found = {}
    for op, dtype, attributes in VARIANTS:
        with tf.Graph().as_default() as graph:
            feeds = {name: tf.compat.v1.placeholder(dtype) for name in cases.SHAPES[op]}
            fetches = list(getattr(tf.raw_ops, op)(**feeds, **attributes))
        with tf.compat.v1.Session(graph=graph, config=config) as session:
            for sizes in SIZES:
                inputs = cases.grad_inputs(op, *sizes, dtype=dtype, **attributes)
                fed = {feeds[name]: value for name, value in inputs.items()}
                runs = {_digest(session.run(fetches, fed)) for _ in range(3)}
                assert len(runs) == 1, f"{op} {sizes}: results differ from run to run"
                found[f"{op} {np.dtype(dtype).name} {attributes} {sizes}"] = runs.pop()
    return found


def _digest(outputs):
    return hashlib.sha256(b"".join(output.tobytes() for output in outputs)).hexdigest()
