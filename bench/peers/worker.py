"""The process of one side, for one number of threads: `python -m bench.peers.worker SIDE`.

It talks as `blockcell.bench.worker` does. The parent writes the job, and the worker answers what
runs there.
Then the parent asks it to prepare a net, or to take a turn on it.
"""

import gc
import sys
import time

import numpy as np

import blockcell
from bench.peers.blocks import Blocks
from bench.peers.nets import Net
from bench.peers.rivals import Keras, Torch
from blockcell.bench.graphs import LabelError
from blockcell.bench.machine import Neighbours
from blockcell.bench.timing import LONG, seconds_of
from blockcell.bench.worker import answer

SIDES = {"stock": Blocks, "ours": Blocks, "keras": Keras, "torch": Torch}
"""What runs each side, made of the side's name and the job.

It has `about`, `prepare`, `run` and `results`.
"""


def serve(messages):
    """Answers messages."""
    name = sys.argv[1]
    side = SIDES[name](name, next(messages))
    yield side.about()
    for message in messages:
        if "net" in message:
            yield prepare(side, Net(*message["net"]), message["seed"], message["results"])
        else:
            yield turn(side, message["repetitions"], message["warm"])


def prepare(side, net, seed, file):
    """Sets a net up, saves its results, and says how long a call takes."""
    side.prepare(net, net.arrays(seed))
    np.savez(file, **side.results())
    first = seconds_of(side.run)
    return {"seconds": first if first > LONG else seconds_of(side.run)}


def turn(side, repetitions, warm):
    """Times some calls, after others for `warm` seconds, that are not timed."""

    def work():
        for _ in range(repetitions):
            side.run()

    gc.collect()
    gc.disable()
    end = time.perf_counter() + warm
    while time.perf_counter() < end:
        side.run()
    neighbours = Neighbours()
    seconds = seconds_of(work)
    spent = neighbours.spent()
    gc.enable()
    return {"seconds": seconds / repetitions, "spent": spent}


if __name__ == "__main__":
    answer(serve, (LabelError, blockcell.LibraryError))
