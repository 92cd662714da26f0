"""What a worker process does: one model in one session.

The processes of a model differ by what they load, and by the program that builds the graph where
that is the point. All else is the same code.
"""

import contextlib
import functools
import os
import time
from typing import NamedTuple, Tuple

import models
from common import sessions

DISTANCE = 0.2
"""How far finite differences go to either side, as the norm of the change of the variable."""


class Slopes(NamedTuple):
    """The slope of the loss in the direction of the gradient of one variable."""

    computed: float
    """By the gradient: its norm."""
    measured: float
    """By central finite differences."""

    @property
    def ratio(self):
        """1 if the gradient is right."""
        return self.measured / self.computed


class Step(NamedTuple):
    """One training step."""

    loss: float
    """Mean cross entropy before the update, nats a byte."""
    seconds: float
    """Duration of `Session.run`."""
    span: float = 0.0
    """In a traced step: seconds from the start of its first op to the end of its last one."""
    ops: Tuple[Tuple[int, float], ...] = ()
    """In a traced step: calls of each of the setting's ops, and the seconds within them."""


class Alone:
    """TensorFlow without the library, and a graph that it may have no kernels for."""

    def __init__(self, model):
        """Reads the committed MetaGraph of a `models.Model`."""
        import tensorflow as tf

        sessions.quiet(tf)
        self._tf, self._graph = tf, tf.Graph()
        with self._graph.as_default():
            tf.compat.v1.train.import_meta_graph(str(model.meta))

    def __enter__(self):
        """Returns itself."""
        return self

    def __exit__(self, *error):
        """Leaves the process as it is."""

    def refusal(self):
        """Sets the initial values; returns the line of the error that says why not, or None."""
        with self._graph.as_default(), sessions.session(self._tf) as session:
            try:
                session.run(sessions.collected(self._graph, models.INIT_OP))
            except self._tf.errors.OpError as error:
                lines = error.message.splitlines()
                line = next((line for line in lines if "OpKernel" in line), lines[0])
                return line.split(" used by")[0]


class Trainer:
    """A model in a session. Use it in a `with` statement, which closes the session."""

    def __init__(self, model, setting, library, precision=models.HIGHEST):
        """Loads what the setting says, builds the graph and sets the initial values.

        Args:
          model: The `models.Model`.
          setting: The `models.Setting`.
          library: Path of libblockcell.so.
          precision: How precise the library's products are.
        """
        os.environ["BLOCKCELL_FLOAT32_MATMUL_PRECISION"] = precision
        import tensorflow as tf

        sessions.quiet(tf)
        self._tf, self._model, self._setting = tf, model, setting
        self._module = sessions.load(tf, setting.loads, library)
        with contextlib.ExitStack() as stack:
            self._graph = stack.enter_context(tf.Graph().as_default())
            self._session = stack.enter_context(sessions.session(tf))
            if setting.program is None:
                tf.compat.v1.train.import_meta_graph(str(model.meta))
            else:
                import programs

                programs.build(tf, setting.program)
            self._session.run(self._collected(models.INIT_OP))
            self._stack = stack.pop_all()

    def __enter__(self):
        """Returns the trainer."""
        return self

    def __exit__(self, *error):
        """Closes the session."""
        self._stack.close()

    def ready(self):
        """Returns the `sessions.Ready` of the process."""
        ops = {op for setting in self._model.settings for op in setting.ops}
        return sessions.ready(self._tf, self._module, ops)

    def step(self, batch):
        """Runs a training step and returns its `Step`."""
        return Step(*self._train(batch))

    def traced_step(self, batch):
        """Runs a training step with tracing and returns its `Step`."""
        (loss, seconds), trace = sessions.traced(self._tf, functools.partial(self._train, batch))
        ops = tuple(trace.ops.get(op, (0, 0.0)) for op in self._setting.ops)
        return Step(loss, seconds, trace.span, ops)

    def slopes(self, batch):
        """Returns the `Slopes` of the variable that the graph has marked, None without one.

        Along its own gradient, the slope of a function is the norm of the gradient.
        """
        if not self._graph.get_collection(models.CHECKED):
            return None
        variable, gradient = self._graph.get_collection(models.CHECKED)
        feed = self._feed(batch)
        loss = self._collected(models.LOSS)
        value, direction = self._session.run([variable, gradient], feed)
        norm = float((direction.astype("float64") ** 2).sum() ** 0.5)
        around = []
        for sign in (1, -1):
            variable.load(value + (sign * DISTANCE / norm) * direction, self._session)
            around.append(float(self._session.run(loss, feed)))
        variable.load(value, self._session)
        return Slopes(norm, (around[0] - around[1]) / (2 * DISTANCE))

    def _train(self, batch, **tracing):
        fetches = [self._collected(models.LOSS), self._collected(models.TRAIN_OP)]
        feed = self._feed(batch)
        start = time.perf_counter()
        loss, _ = self._session.run(fetches, feed, **tracing)
        return float(loss), time.perf_counter() - start

    def _feed(self, batch):
        return {self._collected(key): value for key, value in batch.items()}

    def _collected(self, key):
        return sessions.collected(self._graph, key)
