"""Trains a model on several workers by MultiWorkerMirroredStrategy, and again in one process.

Each worker is a process of its own that loads the library; TensorFlow connects them over loopback.
Exit code 0 means that losses and weights are the same in both trainings, 1 that they are not, or
that a process failed.
"""

import json
import os
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import cluster  # noqa: E402
from common import commands, sessions, standard_library  # noqa: E402
from common.workers import WorkerError  # noqa: E402

BATCH, TIME, SYMBOLS, INPUT_SIZE = 32, 15, 256, 32
LEARNING_RATE, EPSILON = 1e-2, 1e-5
SECONDS = 120
"""How long a training may take before it counts as stuck."""


class Trainer:
    """What a worker does: it holds a part of each batch, and a copy of the model."""

    def __init__(self, library, units, addresses=(), index=0):
        """Loads the library, joins the other workers and makes the model.

        Args:
          library: Path of libblockcell.so.
          units: Units of each recurrent layer.
          addresses: Those of all workers; empty for a training in one process.
          index: Which of them this is.
        """
        if addresses:
            task = {"type": "worker", "index": index}
            cluster_spec = {"cluster": {"worker": addresses}, "task": task}
            os.environ["TF_CONFIG"] = json.dumps(cluster_spec)
        import tensorflow as tf

        # Before the strategy: it starts this worker's server, and with it TensorFlow's runtime.
        self._blockcell = sessions.load_package(library)
        tf.config.threading.set_intra_op_parallelism_threads(1)
        self._tf, self._index, self._count = tf, index, max(1, len(addresses))
        self._strategy = (
            tf.distribute.MultiWorkerMirroredStrategy()
            if addresses
            else tf.distribute.get_strategy()
        )
        with self._strategy.scope():
            self._variables = self._make_variables(units)
            self._optimizer = tf.keras.optimizers.Adam(LEARNING_RATE, epsilon=EPSILON)
        self._step = tf.function(self._distributed_step)

    def __enter__(self):
        """Returns the trainer."""
        return self

    def __exit__(self, *error):
        """Has nothing to close."""

    def train(self, windows):
        """Trains on this worker's rows of each window.

        Args:
          windows: For each step the symbols read and those to predict, int32 [batch, time].

        Returns:
          The losses of the whole batches, and the weights by name.
        """
        rows = slice(self._index * BATCH // self._count, (self._index + 1) * BATCH // self._count)
        losses = [
            float(self._step(*(self._tf.constant(part[rows]) for part in window)))
            for window in windows
        ]
        return losses, {name: variable.numpy() for name, variable in self._variables.items()}

    def save(self, path):
        """Writes a checkpoint of the weights and of the optimizer."""
        self._checkpoint().write(path)

    def restore(self, path):
        """Reads a checkpoint."""
        self._checkpoint().read(path).assert_consumed()

    def _checkpoint(self):
        if not self._optimizer.built:
            with self._strategy.scope():
                self._optimizer.build(list(self._variables.values()))
        return self._tf.train.Checkpoint(optimizer=self._optimizer, **self._variables)

    def taken_over(self):
        """Returns the names of the ops that run on the library's kernels in this process."""
        return self._blockcell.info()["taken_over"]

    def _make_variables(self, units):
        random, both = np.random.RandomState(1), INPUT_SIZE + units
        shapes = {
            "embedding": (SYMBOLS, INPUT_SIZE),
            **{"w": (both, 4 * units), "b": (4 * units,)},
            **{"w_ru": (2 * units, 2 * units), "w_c": (2 * units, units)},
            **{"b_ru": (2 * units,), "b_c": (units,)},
            **{"kernel": (units, SYMBOLS), "bias": (SYMBOLS,)},
        }
        # Vectors are biases; the rest is scaled by the number of inputs.
        values = {
            name: random.standard_normal(shape) / np.sqrt(shape[0]) * (len(shape) > 1)
            for name, shape in shapes.items()
        }
        return {
            name: self._tf.Variable(value.astype(np.float32), name=name)
            for name, value in values.items()
        }

    def _loss(self, inputs, targets):
        """The sum of the cross entropies of these rows, divided by the size of the whole batch."""
        tf, weights = self._tf, self._variables
        x = tf.gather(weights["embedding"], tf.transpose(inputs))
        units = weights["b_c"].shape[0]
        state, peephole = tf.zeros([inputs.shape[0], units]), tf.zeros([units])
        lstm = tf.raw_ops.BlockLSTMV2(
            seq_len_max=tf.constant(TIME, tf.int64),
            x=x,
            cs_prev=state,
            h_prev=state,
            w=weights["w"],
            **dict.fromkeys(("wci", "wcf", "wco"), peephole),
            b=weights["b"],
        )
        gru = self._blockcell.block_gru(
            lstm.h, *(weights[name] for name in ("w_ru", "w_c", "b_ru", "b_c"))
        )
        logits = tf.tensordot(gru.h, weights["kernel"], 1) + weights["bias"]
        entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.transpose(targets), logits)
        return tf.reduce_sum(entropy) / (BATCH * TIME)

    def _replica_step(self, inputs, targets):
        variables = list(self._variables.values())
        with self._tf.GradientTape() as tape:
            loss = self._loss(inputs, targets)
        # The optimizer adds up the gradients of all workers.
        self._optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    def _distributed_step(self, inputs, targets):
        loss = self._strategy.run(self._replica_step, args=(inputs, targets))
        return self._strategy.reduce(self._tf.distribute.ReduceOp.SUM, loss, axis=None)


def arguments(
    words="Train on several workers by MultiWorkerMirroredStrategy, and in one process.",
):
    """Parses the command line.

    Args:
      words: What the program does.
    """
    parser = commands.parser_of(words, "build/distributed", "the logs of the processes")
    parser.add_argument("--workers", type=int, default=2, help="workers (default: 2)")
    parser.add_argument("--units", type=int, default=64, help="units of a layer (default: 64)")
    parser.add_argument("--steps", type=int, default=60, help="training steps (default: 60)")
    parser.add_argument(
        "--tolerance", type=float, default=1e-5, help="relative difference (default: 1e-5)"
    )
    result = commands.parsed(parser)
    if not 1 <= result.workers <= BATCH:
        parser.error(f"--workers must be from 1 to {BATCH}, the rows of a batch")
    return result


def windows_of(options):
    """The symbols read and those to predict in each step."""
    text = np.frombuffer(standard_library.sources(1 << 18), np.uint8)
    return standard_library.windows(text, BATCH, TIME)[: options.steps]


def start(processes, options, workers):
    """Starts this number of workers, or for 0 one process without a strategy.

    Args:
      processes: A `cluster.Cluster`.
      options: Of the command line.
      workers: How many.

    Returns:
      The `Worker` of each.
    """
    library = str(options.library.resolve())
    where = cluster.addresses(workers)
    started = [
        processes.start(f"worker {index}", Trainer, library, options.units, where, index)
        for index in range(workers)
    ] or [processes.start("one process", Trainer, library, options.units)]
    for ops in processes.ask(started, "taken_over"):
        if "BlockLSTMV2" not in ops:
            raise WorkerError(f"a process has not taken over BlockLSTMV2, only {ops}")
    return started


def train(options, windows, workers):
    """Trains with this number of workers, 0 for one process without a strategy.

    Returns:
      For each process its losses and weights.
    """
    with cluster.Cluster(options.output, SECONDS) as processes:
        return processes.ask(start(processes, options, workers), "train", windows)


def main():
    """Command line."""
    options = arguments()
    windows = windows_of(options)
    try:
        ((losses, weights),) = train(options, windows, 0)
        found = train(options, windows, options.workers)
    except WorkerError as error:
        print(f"FAILED {error}")
        return 1
    print(f"one process: loss {losses[0]:.4f} at first, {losses[-1]:.4f} after {len(losses)} steps")
    good = losses[-1] < losses[0]
    for index, (theirs, their_weights) in enumerate(found):
        of_losses = max(abs(a - b) / abs(b) for a, b in zip(theirs, losses))
        of_weights = cluster.largest_difference(weights, their_weights)
        good = good and max(of_losses, of_weights) <= options.tolerance
        print(
            f"worker {index} of {len(found)}: loss {theirs[-1]:.4f}; largest relative difference: "
            f"losses {of_losses:.1e}, weights {of_weights:.1e}"
        )
    print("the same training" if good else "FAILED: not the same training")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
