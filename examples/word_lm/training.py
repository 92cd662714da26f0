"""What a worker process does: the training of one graph in one session."""

import contextlib
import functools
import gzip
import os
import time
from typing import NamedTuple, Tuple

import models
from common import probes, sessions


class Sizes(NamedTuple):
    """What a graph says of itself."""

    batch: int
    time: int
    vocabulary: int
    ops: Tuple[str, ...]
    """The block RNN ops of TensorFlow that it has."""


class Step(NamedTuple):
    """One training step."""

    loss: float
    """Mean cross entropy before the update, nats a word."""
    seconds: float
    """Duration of `Session.run`."""


class Trainer:
    """A graph in a session. Use it in a `with` statement, which closes the session."""

    TRACES = True
    """Whether it can `trace`."""
    BFLOAT16 = False
    """Whether products are in bfloat16: TensorFlow's and the library's."""

    def __init__(self, meta, loads, library, threads):
        """Loads the library or nothing, imports the graph, and sets the initial values.

        Args:
          meta: Path of the graph's file.
          loads: TENSORFLOW or LIBRARY, of `common.sessions`.
          library: Path of libblockcell.so.
          threads: Size of the pool within ops and of the pool across ops.
        """
        level = "medium" if self.BFLOAT16 else "highest"
        os.environ["BLOCKCELL_FLOAT32_MATMUL_PRECISION"] = level
        import tensorflow as tf

        sessions.quiet(tf)
        self._tf = tf
        self._module = sessions.load(tf, loads, library)
        with contextlib.ExitStack() as stack:
            self._graph = stack.enter_context(tf.Graph().as_default())
            self._session = stack.enter_context(sessions.session(tf, threads, self.BFLOAT16))
            tf.compat.v1.train.import_meta_graph(_read(tf, meta))
            self._session.run(self._collected(models.INIT_OP))
            self._stack = stack.pop_all()
        self._fetches = [self._collected(models.LOSS), self._collected(models.TRAIN_OP)]
        self._feeds = [self._collected(models.INPUTS), self._collected(models.TARGETS)]

    def __enter__(self):
        """Returns the trainer."""
        return self

    def __exit__(self, *error):
        """Closes the session."""
        self._stack.close()

    def sizes(self):
        """Returns the graph's `Sizes`."""
        kinds = {node.type for node in self._graph.get_operations()}
        batch, time_ = self._feeds[0].shape.as_list()
        vocabulary = self._collected(models.LOGITS).shape.as_list()[-1]
        return Sizes(batch, time_, vocabulary, tuple(sorted(kinds & set(probes.SHAPES))))

    def ready(self):
        """Returns the `sessions.Ready` of the process."""
        return sessions.ready(self._tf, self._module, self.sizes().ops)

    def steps(self, windows):
        """Runs training steps.

        Args:
          windows: For each step the words read and those to predict, int32 [batch, time].

        Returns:
          A list of `Step`.
        """
        return [self._step(window) for window in windows]

    def trace(self, window):
        """Runs a training step with tracing and returns its `Step` and `sessions.Trace`."""
        return sessions.traced(self._tf, functools.partial(self._step, window))

    def _step(self, window, **tracing):
        feed = dict(zip(self._feeds, window))
        start = time.perf_counter()
        loss, _ = self._session.run(self._fetches, feed, **tracing)
        return Step(float(loss), time.perf_counter() - start)

    def _collected(self, key):
        return sessions.collected(self._graph, key)


def _read(tf, path):
    """Returns the MetaGraphDef of a file."""
    with gzip.open(str(path)) as file:
        return tf.compat.v1.MetaGraphDef.FromString(file.read())
