"""Digests of what the cuDNN ops return, for `test_cudnn_threads`: one number of threads."""

import hashlib
import json
import os

import numpy as np

import blockcell
from blockcell_tools.reference.cudnn import Network
from helpers import cudnn

SIZES = [(2, 3, 5, 4), (5, 20, 65, 130), (3, 64, 33, 9), (90, 2, 17, 3)]
"""Time, batch, units, input_size: from what stays on one thread to what is worth many."""


def prepare():
    blockcell.load()


def digests():
    """Runs every case twice; returns the digests of the results, one per case."""
    threads = int(os.environ["BLOCKCELL_TEST_THREADS"])
    found = {}
    for mode in cudnn.MODES:
        for dtype in (np.float32, np.float16):
            for directions, (time, batch, units, input_size) in zip((2, 1, 2, 2), SIZES):
                network = Network(mode, units, input_size, 2, directions)
                inputs = cudnn.inputs_of(network, time, batch, dtype, lengths="random")
                options = {"threads": threads, "dropout": 0.25, "seed": 1}
                runs = [cudnn.run(network, inputs, **options) for _ in range(2)]
                one, again = map(_digest, runs)
                assert one == again, f"{network}: results differ from run to run"
                found[json.dumps([*network, np.dtype(dtype).name])] = one
    return found


def _digest(outputs):
    names = cudnn.FORWARD + cudnn.BACKPROP
    return hashlib.sha256(b"".join(outputs[name].tobytes() for name in names)).hexdigest()
