"""What a worker process does: one model in one session.

The processes of a model differ by what they load, and by the program that builds the graph where
that is the point. All else is the same code.
"""

import contextlib
import os
import pathlib
import sys
import time

import models
import probes
from worker import Ready, Slopes, Step

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "python"
"""Where the Python package `blockcell` is."""
DISTANCE = 0.2
"""How far finite differences go to either side, as the norm of the change of the variable."""


class Trainer:
    """A model in a session. Use it in a `with` statement, which closes the session."""

    def __init__(self, model, setting, library):
        """Loads what the setting says, builds the graph and sets the initial values.

        Args:
          model: The `models.Model`.
          setting: The `models.Setting`.
          library: Path of libblockcell.so.
        """
        import tensorflow as tf

        tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
        tf.compat.v1.disable_eager_execution()
        self._tf, self._model, self._setting = tf, model, setting
        self._module = _load(tf, setting, library)
        with contextlib.ExitStack() as stack:
            self._graph = stack.enter_context(tf.Graph().as_default())
            self._session = stack.enter_context(_session(tf))
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
        """Returns `Ready`."""
        tf, info, labelled = self._tf, None, {}
        ops = {op for setting in self._model.settings for op in setting.ops if op in probes.SHAPES}
        if self._module is not None:
            with tf.Graph().as_default(), _session(tf) as session:
                info = session.run(self._module.blockcell_info()).decode()
            labelled = {op: probes.refusal(tf, _session, op, "blockcell") for op in ops}
        refusals = {op: probes.refusal(tf, _session, op) for op in ops}
        return Ready(tf.__version__, info, refusals, labelled)

    def step(self, batch):
        """Runs a training step and returns its `Step`."""
        return Step(*self._train(batch))

    def traced_step(self, batch):
        """Runs a training step with tracing and returns its `Step`."""
        v1 = self._tf.compat.v1
        options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
        metadata = v1.RunMetadata()
        loss, seconds = self._train(batch, options=options, run_metadata=metadata)
        return Step(loss, seconds, *_time_in(self._setting.ops, metadata.step_stats))

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
        (member,) = self._graph.get_collection(key)
        return member


def _load(tf, setting, library):
    """Loads what the setting says. Returns the module of the library's ops, or None."""
    if setting.loads == models.TENSORFLOW:
        return None
    if setting.loads == models.LIBRARY:
        return tf.load_op_library(library)  # all that is needed to train with blockcell
    if setting.loads == models.GRADIENTS:
        os.environ["BLOCKCELL_OVERRIDE"] = "0"
    sys.path.insert(0, str(PACKAGE))
    import blockcell

    return blockcell.load(library)


def _session(tf):
    # The kernels under test are for CPUs.
    config = tf.compat.v1.ConfigProto(device_count={"GPU": 0})
    return tf.compat.v1.Session(config=config)


def _time_in(types, step_stats):
    """Returns the span of a traced step in seconds, and for each type of op calls and seconds."""
    traced = [
        op
        for device in step_stats.dev_stats
        if "/device:CPU:" in device.device
        for op in device.node_stats
    ]
    first = min(op.all_start_micros for op in traced)
    last = max(op.all_start_micros + op.all_end_rel_micros for op in traced)
    result = []
    for kind in types:
        # "name = Type(inputs)"; names within function bodies are not those of the graph.
        calls = [op for op in traced if f" = {kind}(" in op.timeline_label]
        nanoseconds = sum(op.op_end_rel_nanos - op.op_start_rel_nanos for op in calls)
        result.append((len(calls), nanoseconds * 1e-9))
    return (last - first) * 1e-6, tuple(result)
