"""All ops at once, in many threads: `python -m robustness.load --seconds 120`.

Eight threads of Python call all ops in four sessions of two graphs, in an order of their own. Each
result must be that of a call with nothing beside it, bit for bit. The exit code is 1 if one is not.
"""

import argparse
import random
import sys
import threading
import time
import warnings
from typing import Any, Dict, NamedTuple

import tensorflow as tf

import blockcell
from blockcell import op_table
from blockcell_tools.reference.inputs import inputs_of
from robustness import calling, cudnn_ops, own_ops

v1 = tf.compat.v1
THREADS, SESSIONS_OF_A_GRAPH = 8, 2
TOGETHER = 8
"""How many ops most steps have; some have all."""
SIZES = [(3, 2, 4, 5), (33, 65, 130, 4), (2, 256, 256, 3)]
"""Batch, input_size, cell_size and time of the ops in the table: some are worth many threads."""


class Call(NamedTuple):
    """A valid call."""

    op: str
    inputs: Dict[str, Any]
    attributes: Dict[str, Any]


def calls():
    """Valid calls of every op, for each of two graphs: those of the table, and all others."""
    table = [
        Call(op, inputs_of(op, *sizes, dtype=dtype, **on), on)
        for op, dtype, on in op_table.variants()
        for sizes in SIZES
    ]
    others = [
        Call(case.op, case.make(), case.attributes)
        for family in (own_ops, cudnn_ops)
        for op in family.OPS
        for case in family.cases(op)
        if case.what.endswith(": good")
    ]
    return [table, others]


class _Graph:
    """Calls in a graph, whose inputs are fed, and what each has to return."""

    def __init__(self, some):
        self._names = [call.op for call in some]
        with tf.Graph().as_default() as graph:
            self._nodes = [calling.node(*call) for call in some]
        # One op after the other, each on one thread.
        alone = v1.ConfigProto(
            intra_op_parallelism_threads=1,
            inter_op_parallelism_threads=1,
            use_per_session_threads=True,
        )
        every = list(range(len(some)))
        with v1.Session(graph=graph, config=alone) as session:
            self._wanted = self._bytes(session, every)
        self._sessions = [v1.Session(graph=graph) for _ in range(SESSIONS_OF_A_GRAPH)]
        # A session is slow where it gets to know a new set of fetches, so there are few.
        mixed = random.Random(0).sample(every, len(every))
        self._sets = [every, *(mixed[k : k + TOGETHER] for k in range(0, len(mixed), TOGETHER))]

    def _bytes(self, session, some):
        """What some calls return, all of them in one step."""
        feeds = {}
        for k in some:
            feeds.update(self._nodes[k].feeds)
        found = session.run([self._nodes[k].fetches for k in some], feeds)
        return [b"".join(array.tobytes() for array in arrays) for arrays in found]

    def differing(self, draw):
        """Runs some calls in one step; returns the ops with other results, and how many ran."""
        some = draw.choice(self._sets)
        found = self._bytes(draw.choice(self._sessions), some)
        return [self._names[k] for k, got in zip(some, found) if got != self._wanted[k]], len(some)


def run(seconds):
    """Calls all ops; returns how many calls there were, and the ops that differed or failed."""
    graphs = [_Graph(some) for some in calls()]
    end = time.monotonic() + seconds
    counts, wrong = [0] * THREADS, []

    def work(number):
        draw = random.Random(number)
        try:
            while not counts[number] or time.monotonic() < end:
                ops, count = draw.choice(graphs).differing(draw)
                counts[number] += count
                wrong.extend(ops)
        except Exception as error:
            wrong.append(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts), wrong


def main():
    """Command line."""
    parser = argparse.ArgumentParser(prog="robustness.load", description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0, help="how long (default: 120)")
    seconds = parser.parse_args().seconds
    warnings.simplefilter("ignore")
    blockcell.load()
    count, wrong = run(seconds)
    isa, sessions = blockcell.info()["isa"], 2 * SESSIONS_OF_A_GRAPH
    print(f"TensorFlow {tf.__version__}, {isa}: {count:,} calls by {THREADS} threads in {sessions}")
    print(f"sessions, in {seconds:.0f} s; {len(wrong)} differ from calls with nothing beside them")
    for text in sorted(set(wrong))[:20]:
        print(f"FAILED {text}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
