"""How long the library's graph passes take on graphs in which they have nothing, or much, to do.

Run it as `python -m bench.passes`. The graphs are those of `tests/python/processes/traps/depth.py`,
and an LSTM of more and more unrolled steps, whose times show what does not grow in proportion.
Each runs in processes that take turns: with the passes and without. TensorFlow's log has the time
when each pass begins, to the microsecond; what the passes add to a first step includes what follows
from what they did, and is much less certain.
"""

import argparse
import json
import re
import sys
import time
from datetime import datetime
from pathlib import Path

import numpy as np

from bench.comparison import positive
from blockcell.cli.console import new_console
from blockcell_tools.bench.report import rich_table
from blockcell_tools.processes import run_module

TESTS = Path(__file__).resolve().parent.parent / "tests" / "python"
GRAPHS = ["large_graph_without_cells", "large_graph_with_a_cell"]
GRAPHS += ["chain_of_add", "balanced_of_add", "chain_of_add_n", "balanced_of_add_n"]
UNROLLED = {f"unrolled_{steps}_steps": steps for steps in (300, 1000, 3000)}
GRAPHS += UNROLLED
COLUMNS = ("graph", "passes ms", "first step ms", "without", "difference")
NOTE = (
    "Medians. Passes: from TensorFlow's log, all passes of the library together. First step: the "
    "first session.run less the second one, with the library's passes and without."
)
STARTS = re.compile(r"optimization_registry.cc:\d+\] (?:Running|Finished) (.*)$")
SECONDS = re.compile(r"^\w\d{4} 00:00:(\d+\.\d+) ")  # TensorFlow 2.19 and later
DATE = re.compile(r"^(\d+-\d+-\d+ \d+:\d+:\d+\.\d+): ")


def main():
    """Runs the comparison."""
    parser = argparse.ArgumentParser(prog="python -m bench.passes", description=__doc__)
    add = parser.add_argument
    add("--graphs", nargs="+", choices=GRAPHS, default=GRAPHS, metavar="GRAPH", help="default: all")
    add("--rounds", type=positive(int), default=3, help="default: %(default)s")
    add("--library", metavar="FILE", help="libblockcell.so to measure")
    add("--first-step", choices=GRAPHS, help=argparse.SUPPRESS)  # What the process of a run does.
    arguments = parser.parse_args()
    if arguments.first_step:
        return first_step(arguments.first_step)
    rows = []
    for graph in arguments.graphs:
        rounds = {"1": [], "0": []}
        for number in range(arguments.rounds):
            for rewrite in ("10", "01")[number % 2]:
                rounds[rewrite].append(run(graph, rewrite, arguments.library))
        rows.append(row(graph, rounds))
    new_console().print(rich_table("The library's graph passes", COLUMNS, rows, 1, NOTE))


def row(graph, rounds):
    """What the table shows of the rounds of a graph."""
    passes = np.median([found["passes"] for found in rounds["1"]])
    steps = [np.median([found["step"] for found in rounds[rewrite]]) for rewrite in ("1", "0")]
    figures = [passes, *steps, steps[0] - steps[1]]
    return [graph, *(f"{figure * 1e3:.1f}" for figure in figures)]


def run(graph, rewrite, library):
    """Runs a graph in a process of its own; returns seconds by what took them."""
    variables = {"BLOCKCELL_LIBRARY": library} if library else {}
    variables.update(BLOCKCELL_REWRITE=rewrite, BLOCKCELL_WHOLE="1")
    variables.update(TF_CPP_MIN_LOG_LEVEL="0", TF_CPP_VMODULE="optimization_registry=1")
    done = run_module("bench.passes", ["--first-step", graph], **variables)
    if done.returncode:
        sys.exit(f"bench.passes: {graph}: {done.stderr[-2000:]}")
    answer = json.loads(done.stdout.splitlines()[-1])
    return dict(answer, passes=passes_of(done.stderr, answer["begin"]))


def passes_of(log, begin):
    """Seconds of all passes of the library after a time, by TensorFlow's log."""
    total, last = 0.0, None
    for line in log.splitlines():
        starts = STARTS.search(line)
        if starts is None:
            continue
        now = time_of(line)
        if last is not None:
            total += now - last
        ours = starts.group(1).startswith("optimization pass: Blockcell")
        last = now if ours and now >= begin else None
    return total


def time_of(line):
    """The time at the beginning of a line of the log, in seconds."""
    seconds = SECONDS.search(line)
    if seconds:
        return float(seconds.group(1))
    return datetime.strptime(DATE.search(line).group(1), "%Y-%m-%d %H:%M:%S.%f").timestamp()


def unrolled(net, steps):
    """An LSTM as `static_rnn` unrolls `BasicLSTMCell`; all of it becomes one node."""
    import tensorflow as tf

    batch, size = 2, 8
    w, b = tf.constant(net.values(2 * size, 4 * size)), tf.constant(net.values(4 * size))
    c = h = tf.zeros([batch, size])
    x = tf.compat.v1.placeholder(tf.float32, [steps, batch, size])
    net.feeds[x] = net.values(steps, batch, size)
    for part in tf.unstack(x):
        gates = tf.nn.bias_add(tf.matmul(tf.concat([part, h], 1), w), b)
        i, j, f, o = tf.split(gates, 4, 1)
        c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
        h = tf.tanh(c) * tf.sigmoid(o)
    return [h]


def first_step(graph):
    """Prints when the first step of a graph began, and how many seconds it took."""
    sys.path[:0] = [str(TESTS), str(TESTS / "processes")]
    import rewrite_traps
    from traps import depth, net

    def step(session, built, fetches):
        times = [time.time()]
        for _ in range(2):
            session.run(fetches, built.feeds)
            times.append(time.time())
        first, second = np.diff(times)
        return {"begin": times[0], "step": first - second}

    rewrite_traps.prepare()
    build = depth.GRAPHS.get(graph) or (lambda made: unrolled(made, UNROLLED[graph]))
    found = net.run_graph(build, step, optimized=False)
    print(json.dumps({name: found[name] for name in ("begin", "step")}))


if __name__ == "__main__":
    main()
