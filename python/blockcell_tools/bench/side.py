"""What the process of one side does, for one number of threads.

It talks as `blockcell_tools.bench.worker` does. The parent writes the job, and the worker
answers what runs there. Then the parent asks it to prepare a net, or to take a turn on it, by calls
one after the other or by those of several clients at once.
"""

import gc
import sys
import time

import numpy as np

from blockcell_tools.bench import clients
from blockcell_tools.bench.machine import Neighbours
from blockcell_tools.bench.timing import LONG, seconds_of


def serve(sides, net_type):
    """Makes the function that answers messages, for `blockcell_tools.bench.worker.answer`.

    Args:
      sides: What runs each side, by name, made of the side's name and the job. It has `about`,
        `prepare`, `run` and `results`. If a run is several calls, `calls` is their number. If it
        has `clients`, they are those of `clients.load`. The name is the program's argument.
      net_type: The named tuple that says what to prepare; its `arrays` makes inputs of a seed.
    """

    def answers(messages):
        name = sys.argv[1]
        side = sides[name](name, next(messages))
        yield side.about()
        for message in messages:
            if "net" in message:
                net = net_type(*message["net"])
                yield prepare(side, net, message["seed"], message["results"])
            elif "about" in message:
                yield side.about()
            elif "load" in message:
                yield clients.load(side.clients, message["load"], message["warm"])
            else:
                yield turn(side, message["repetitions"], message["warm"])

    return answers


def prepare(side, net, seed, file):
    """Sets a net up, saves its results, and says how long a call takes, and what is there now."""
    side.prepare(net, net.arrays(seed))
    np.savez(file, **side.results())
    first = seconds_of(side.run)
    seconds = first if first > LONG else seconds_of(side.run)
    return {"seconds": seconds, "about": side.about()}


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
    return {"seconds": seconds / repetitions / getattr(side, "calls", 1), "spent": spent}
