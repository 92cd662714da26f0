"""Trains a graph made by TensorFlow 1.15 on a parameter server and two workers.

The graph is imported unchanged: its variables go to the parameter server, its ops to the workers,
each of which is a process of its own that loads the library. First the workers take turns, step by
step, which has to give the same losses and weights as one process. Then they train at the same
time. Exit code 0 means that it was so and that the loss fell, 1 that it was not.
"""

import contextlib
import pathlib
import sys
from typing import Dict, List, NamedTuple

import numpy as np

EXAMPLES = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(EXAMPLES))

import cluster  # noqa: E402
from common import commands, probes, sessions, standard_library  # noqa: E402
from common.workers import WorkerError  # noqa: E402

GRAPHS = EXAMPLES / "char_lm" / "graphs"
COLLECTIONS = "char_lm/"
"""Collections of the graphs begin with this: inputs, targets, loss, train_op and init_op."""
BATCH, TIME = 64, 25
"""Shape of what the graphs are fed."""
SECONDS = 120
"""How long the workers may take before they count as stuck."""


def start_server(tf, addresses, job, index):
    """Starts TensorFlow's server in this process.

    Args:
      tf: TensorFlow.
      addresses: Those of the cluster, by job.
      job: The job of this process.
      index: Its task.

    Returns:
      The `tf.distribute.Server`.
    """
    config = tf.compat.v1.ConfigProto(device_count={"GPU": 0}, intra_op_parallelism_threads=1)
    return tf.distribute.Server(
        tf.train.ClusterSpec(addresses), job_name=job, task_index=index, config=config
    )


class Server:
    """What the parameter server does: it holds the variables, and waits."""

    def __init__(self, addresses):
        """Starts TensorFlow's server. It runs no cell, so it needs no library."""
        import tensorflow as tf

        self._server = start_server(tf, addresses, "ps", 0)

    def __enter__(self):
        """Returns itself."""
        return self

    def __exit__(self, *error):
        """Has nothing to close: the server lives as long as its process."""


class Trainer:
    """What a worker does: it runs training steps of the graph."""

    def __init__(self, meta, library, addresses=None, index=0):
        """Loads the library, starts the server and imports the graph.

        Args:
          meta: Path of the MetaGraph.
          library: Path of libblockcell.so; None to load nothing.
          addresses: Those of the cluster, by job; None for a training in one process.
          index: Which of the workers this is.
        """
        import tensorflow as tf

        sessions.quiet(tf)
        self._tf, self._index = tf, index
        # Before the server, which may run parts of others' graphs as soon as it is there.
        self._module = sessions.load(
            tf, sessions.LIBRARY if library else sessions.TENSORFLOW, library
        )
        target, device = "", None
        if addresses:
            self._server = start_server(tf, addresses, "worker", index)
            target = self._server.target
            device = tf.compat.v1.train.replica_device_setter(
                cluster=tf.train.ClusterSpec(addresses),
                worker_device=f"/job:worker/task:{index}",
            )
        with contextlib.ExitStack() as stack:
            self._graph = stack.enter_context(tf.Graph().as_default())
            with tf.compat.v1.device(device):
                tf.compat.v1.train.import_meta_graph(meta)
            # Its own graph and the parameter server's variables: it waits for no other worker.
            filters = ["/job:ps", f"/job:worker/task:{index}"] if addresses else []
            config = tf.compat.v1.ConfigProto(
                device_filters=filters,
                device_count={"GPU": 0},
                intra_op_parallelism_threads=1,
            )
            self._session = stack.enter_context(tf.compat.v1.Session(target, config=config))
            self._stack = stack.pop_all()

    def __enter__(self):
        """Returns the trainer."""
        return self

    def __exit__(self, *error):
        """Closes the session."""
        self._stack.close()

    def initialize(self):
        """Sets the initial values of the variables; one of the workers does it, for all."""
        self._session.run(self._collected("init_op"))

    def train(self, windows):
        """Runs a training step for each window, and returns the losses before the steps.

        Args:
          windows: For each step the symbols read and those to predict, int32 [batch, time].
        """
        fetches = [self._collected("loss"), self._collected("train_op")]
        return [float(self._session.run(fetches, self._feed(one))[0]) for one in windows]

    def weights(self):
        """Returns the values of the trained variables by name."""
        with self._graph.as_default():
            variables = self._tf.compat.v1.trainable_variables()
        return {variable.op.name: self._session.run(variable) for variable in variables}

    def cells(self, window):
        """Runs the model forward, and returns the names of the devices on which its cells ran."""
        v1 = self._tf.compat.v1
        metadata = v1.RunMetadata()
        self._session.run(
            self._collected("loss"),
            self._feed(window),
            options=v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE),
            run_metadata=metadata,
        )
        return sorted(
            {
                device.device
                for device in metadata.step_stats.dev_stats
                for node in device.node_stats
                if sessions.kind_of(node) in probes.SHAPES
            }
        )

    def ready(self):
        """Returns the `sessions.Ready` of the process, of the ops that the graph has."""
        kinds = {node.type for node in self._graph.get_operations()}
        return sessions.ready(self._tf, self._module, sorted(kinds & set(probes.SHAPES)))

    def _feed(self, window):
        return dict(zip((self._collected("inputs"), self._collected("targets")), window))

    def _collected(self, key):
        return sessions.collected(self._graph, COLLECTIONS + key)


def arguments():
    """Parses the command line."""
    parser = commands.parser_of(
        "Train a graph of TensorFlow 1.15 on a parameter server and two workers.",
        "build/distributed",
        "the logs of the processes",
    )
    parser.add_argument(
        "--graph",
        choices=sorted(path.stem for path in GRAPHS.glob("*.meta")),
        default="lstm_block_cell",
        help="model of examples/char_lm (default: lstm_block_cell)",
    )
    parser.add_argument(
        "--steps", type=int, default=12, help="steps by turns, and then of each (default: 12)"
    )
    parser.add_argument(
        "--tolerance", type=float, default=1e-5, help="relative difference (default: 1e-5)"
    )
    return commands.parsed(parser)


class Found(NamedTuple):
    """What the cluster has done."""

    losses: List[float]
    """Of the steps by turns."""
    weights: Dict[str, np.ndarray]
    """After them."""
    together: List[List[float]]
    """Of each worker, the losses while all of them trained."""


def in_one_process(processes, meta, library, windows):
    """Returns the losses and the weights of a training without a cluster."""
    worker = [processes.start("one process", Trainer, meta, library)]
    processes.ask(worker, "initialize")
    (losses,) = processes.ask(worker, "train", windows)
    (weights,) = processes.ask(worker, "weights")
    return losses, weights


def on_a_cluster(processes, meta, library, windows):
    """Returns what a parameter server and two workers have `Found`.

    Raises:
      WorkerError: One of them failed, or did not run the cells on the library's kernels.
    """
    server, *workers = cluster.addresses(3)
    where = {"ps": [server], "worker": workers}
    processes.start("parameter server", Server, where)
    workers = [
        processes.start(f"worker {index}", Trainer, meta, library, where, index)
        for index in range(len(workers))
    ]
    processes.ask(workers[:1], "initialize")
    for index, worker in enumerate(workers):
        check([worker], processes, index, windows[0])
    losses = []
    for step, window in enumerate(windows):
        ((loss,),) = processes.ask([workers[step % len(workers)]], "train", [window])
        losses.append(loss)
    (weights,) = processes.ask(workers[:1], "weights")
    return Found(losses, weights, processes.ask(workers, "train", windows))


def check(worker, processes, index, window):
    """Checks that a worker runs the cells itself, on the library's kernels."""
    (devices,) = processes.ask(worker, "cells", window)
    if [device.split("/device:")[0] for device in devices] != [
        f"/job:worker/replica:0/task:{index}"
    ]:
        raise WorkerError(f"the cells of worker {index} ran on {devices}")
    (ready,) = processes.ask(worker, "ready")
    for op, words in ready.refusals.items():
        if words != ready.labelled_refusals[op]:
            raise WorkerError(f"{op} of worker {index} did not run on the library's kernel")


def main():
    """Command line."""
    options = arguments()
    meta, library = str(GRAPHS / (options.graph + ".meta")), str(options.library.resolve())
    text = np.frombuffer(standard_library.sources(1 << 18), np.uint8)
    windows = standard_library.windows(text, BATCH, TIME)[: options.steps]
    try:
        with cluster.Cluster(options.output, SECONDS) as processes:
            losses, weights = in_one_process(processes, meta, library, windows)
        with cluster.Cluster(options.output, SECONDS) as processes:
            found = on_a_cluster(processes, meta, library, windows)
    except WorkerError as error:
        print(f"FAILED {error}")
        return 1
    of_losses = max(abs(a - b) / abs(b) for a, b in zip(found.losses, losses))
    of_weights = cluster.largest_difference(weights, found.weights)
    print(f"one process: loss {losses[0]:.4f} at first, {losses[-1]:.4f} in step {len(losses)}")
    print(
        f"two workers by turns: loss {found.losses[-1]:.4f}; largest relative difference: losses "
        f"{of_losses:.1e}, weights {of_weights:.1e}"
    )
    for index, together in enumerate(found.together):
        print(f"worker {index} beside the other: loss {together[0]:.4f} to {together[-1]:.4f}")
    good = max(of_losses, of_weights) <= options.tolerance
    good = good and all(together[-1] < losses[0] for together in found.together)
    print("the same training" if good else "FAILED: not the same training, or no lower loss")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
