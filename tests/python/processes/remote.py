"""A session whose graph is placed on another process, which may have the library or not.

There are three processes, and the one in the middle has no library.
"""

import contextlib
import os
import sys
import tempfile
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
sys.path[:0] = [str(EXAMPLES), str(EXAMPLES / "distributed")]

import cluster  # noqa: E402
import numpy as np  # noqa: E402
from common import probes, sessions  # noqa: E402
from parameter_server import BATCH, COLLECTIONS, GRAPHS, TIME, start_server  # noqa: E402

LIBRARY = os.environ["BLOCKCELL_TEST_LIBRARY"]
CELL, SEQUENCE = "lstm_block_cell", "lstm_block_fused_cell"
SECONDS = 100
STEPS = 3
WINDOW = np.random.RandomState(1).randint(0, 256, [2, BATCH, TIME]).astype(np.int32)


class Task:
    """One of the processes."""

    def __init__(self, addresses, index, has_library):
        import tensorflow as tf

        sessions.quiet(tf)
        sessions.load(tf, sessions.LIBRARY if has_library else sessions.TENSORFLOW, LIBRARY)
        self._tf = tf
        self._server = start_server(tf, {"worker": addresses}, "worker", index)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def is_there(self):
        return True

    def train(self, model, task):
        """The losses of training steps on the process of that task, or the error in words."""
        v1 = self._tf.compat.v1
        with contextlib.ExitStack() as stack:
            graph = stack.enter_context(self._tf.Graph().as_default())
            with v1.device(f"/job:worker/task:{task}"):
                v1.train.import_meta_graph(str(GRAPHS / (model + ".meta")))
            session = stack.enter_context(v1.Session(self._server.target))
            keys = ("inputs", "targets", "init_op", "loss", "train_op")
            inputs, targets, init, loss, train = (
                sessions.collected(graph, COLLECTIONS + key) for key in keys
            )
            session.run(init)
            try:
                window = dict(zip((inputs, targets), WINDOW))
                return [float(session.run([loss, train], window)[0]) for _ in range(STEPS)]
            except self._tf.errors.OpError as error:
                return f"{type(error).__name__}: {error.message}"

    def refusal(self, task, label=None):
        """How the kernel in the process of that task refuses a malformed call."""
        v1 = self._tf.compat.v1

        @contextlib.contextmanager
        def there(_):
            with v1.device(f"/job:worker/task:{task}"), v1.Session(self._server.target) as session:
                yield session

        return probes.refusal(self._tf, there, "GRUBlockCell", label)


def losses_or_errors():
    """By who has the library and by the model: the losses of steps, or the error in words.

    Also the refusals of a call by the session without the library, and by the library's kernel.
    """
    with tempfile.TemporaryDirectory() as logs, cluster.Cluster(Path(logs), SECONDS) as processes:
        addresses = cluster.addresses(3)
        tasks = [
            processes.start(f"task {index}", Task, addresses, index, index != 1)
            for index in range(3)
        ]
        processes.ask(tasks, "is_there")

        def train(session, ops):
            return {
                model: processes.ask([tasks[session]], "train", model, ops)[0]
                for model in (CELL, SEQUENCE)
            }

        return {
            "nobody": train(1, 1),
            "session": train(0, 1),
            "ops": train(1, 2),
            "both": train(0, 2),
            "one process": train(0, 0),
            "refusal": processes.ask(tasks[1:2], "refusal", 2)[0],
            "our_refusal": processes.ask(tasks[2:], "refusal", 2, "blockcell")[0],
        }
