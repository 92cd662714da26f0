"""The process that trains one graph in one session, a step at a time, as its parent asks.

Two of them run side by side: one never loads the library, the other does so in one line. All
else is the same code. `Worker` is the parent's end; `serve` is what runs in the process.
"""

import contextlib
import multiprocessing
import os
import signal
import sys
import time
import traceback
from typing import NamedTuple, Optional

import models

PROBE = {
    "GRUBlockCellGrad": {
        "x": (1, 1), "h_prev": (1, 1), "w_ru": (2, 2), "w_c": (2, 1), "b_ru": (2,), "b_c": (1,),
        "r": (1, 2), "u": (1, 1), "c": (1, 1), "d_h": (1, 1),
    },
    "LSTMBlockCellGrad": {
        "x": (1, 1), "cs_prev": (1, 1), "h_prev": (1, 1), "w": (2, 4), "wci": (1,), "wcf": (1,),
        "wco": (1,), "b": (4,), "i": (1, 2), "cs": (1, 1), "f": (1, 1), "o": (1, 1), "ci": (1, 1),
        "co": (1, 1), "cs_grad": (1, 1), "h_grad": (1, 1),
    },
}  # fmt: skip
"""Shapes of a call that every kernel refuses, each in its own words: one tensor is too wide."""


class Ready(NamedTuple):
    """What a worker says of itself before the first step."""

    tensorflow: str
    """Version of TensorFlow."""
    info: Optional[str]
    """What the library's op BlockcellInfo returned, JSON; None without the library."""
    refusal: str
    """How the kernel of an unlabelled gradient node refuses the call PROBE."""
    labelled_refusal: Optional[str]
    """How the kernel labelled ``blockcell`` refuses it; None without the library."""


class Step(NamedTuple):
    """One training step."""

    loss: float
    """Mean cross entropy before the update, nats a byte."""
    seconds: float
    """Duration of `Session.run`."""
    span: float = 0.0
    """In a traced step: seconds from the start of its first op to the end of its last one."""
    gradient: float = 0.0
    """In a traced step: seconds within calls of the gradient op."""
    calls: int = 0
    """In a traced step: calls of the gradient op."""


class WorkerError(Exception):
    """A worker failed or died; the message says which and why."""


class Worker:
    """A worker process, seen from the parent."""

    def __init__(self, name, model, library, log):
        """Starts the process.

        Args:
          name: What messages call it.
          model: The `models.Model` to train.
          library: Path of libblockcell.so, or None for stock kernels.
          log: Path of the file that takes whatever the process writes.
        """
        self.name = name
        self.log = log
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(
            target=serve, args=(theirs, model, library, log), name=name, daemon=True
        )
        # Ctrl-C reaches the whole process group: only the parent is to act on it.
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            self._process.start()
        finally:
            signal.signal(signal.SIGINT, handler)
        theirs.close()

    def ready(self):
        """Waits for the process to be ready and returns its `Ready`."""
        return self._receive()

    def step(self, window, traced=False):
        """Runs one training step.

        Args:
          window: int32 array [BATCH, TIME + 1].
          traced: Whether to trace the ops.

        Returns:
          A `Step`.
        """
        with contextlib.suppress(BrokenPipeError):  # what killed it is told by _receive
            self._connection.send((window, traced))
        return self._receive()

    def stop(self):
        """Ends the process, whatever it is doing."""
        self._connection.close()
        self._process.terminate()
        self._process.join()

    def _receive(self):
        try:
            answer = self._connection.recv()
        except (EOFError, ConnectionResetError):
            self._process.join()
            code = self._process.exitcode
            how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
            raise WorkerError(f"the {self.name} worker {how}; see {self.log}") from None
        if isinstance(answer, str):
            raise WorkerError(f"the {self.name} worker failed: {answer}\nsee {self.log}")
        return answer


def serve(connection, model, library, log):
    """Runs in the process: reports `Ready`, then answers every request with a `Step`."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
    with open(log, "w", encoding="utf-8") as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
        os.dup2(file.fileno(), sys.stderr.fileno())
    try:
        _train(connection, model, library)
    except EOFError:
        pass  # the parent has closed its end
    except Exception as error:
        traceback.print_exc()
        connection.send(f"{type(error).__name__}: {error}")


def _train(connection, model, library_path):
    import tensorflow as tf

    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
    tf.compat.v1.disable_eager_execution()
    library = None
    if library_path is not None:
        library = tf.load_op_library(library_path)  # all that is needed to train with blockcell

    with tf.Graph().as_default() as graph, _session(tf) as session:
        tf.compat.v1.train.import_meta_graph(str(model.meta))
        session.run(graph.get_collection(models.INIT_OP))
        connection.send(_ready(tf, model, library))
        while True:
            window, traced = connection.recv()
            connection.send(_step(tf, graph, session, model, window, traced))


def _session(tf):
    # The kernels under test are for CPUs.
    config = tf.compat.v1.ConfigProto(device_count={"GPU": 0})
    return tf.compat.v1.Session(config=config)


def _step(tf, graph, session, model, window, traced):
    inputs, targets, loss = (
        graph.get_collection(key)[0] for key in (models.INPUTS, models.TARGETS, models.LOSS)
    )
    fetches = [loss, graph.get_collection(models.TRAIN_OP)[0]]
    feed = {inputs: window[:, :-1], targets: window[:, 1:]}
    if not traced:
        start = time.perf_counter()
        value, _ = session.run(fetches, feed)
        return Step(float(value), time.perf_counter() - start)

    options = tf.compat.v1.RunOptions(trace_level=tf.compat.v1.RunOptions.FULL_TRACE)
    metadata = tf.compat.v1.RunMetadata()
    start = time.perf_counter()
    value, _ = session.run(fetches, feed, options=options, run_metadata=metadata)
    seconds = time.perf_counter() - start
    return Step(float(value), seconds, *_gradient_share(graph, model, metadata.step_stats))


def _gradient_share(graph, model, step_stats):
    """Returns the span of a traced step, its part in the gradient op, in seconds, and the calls."""
    names = {op.name for op in graph.get_operations() if op.type == model.gradient}
    ops = [
        op
        for device in step_stats.dev_stats
        if "/device:CPU:" in device.device
        for op in device.node_stats
    ]
    first = min(op.all_start_micros for op in ops)
    last = max(op.all_start_micros + op.all_end_rel_micros for op in ops)
    calls = [op.op_end_rel_nanos - op.op_start_rel_nanos for op in ops if op.node_name in names]
    return (last - first) * 1e-6, sum(calls) * 1e-9, len(calls)


def _ready(tf, model, library):
    info = labelled = None
    if library is not None:
        with tf.Graph().as_default(), _session(tf) as session:
            info = session.run(library.blockcell_info()).decode()
        labelled = _refusal(tf, model.gradient, {model.gradient: "blockcell"})
    return Ready(tf.__version__, info, _refusal(tf, model.gradient, {}), labelled)


def _refusal(tf, gradient, labels):
    """Returns the words in which a kernel refuses the call PROBE.

    Args:
      tf: TensorFlow.
      gradient: Type of the op.
      labels: Which kernel label to use for which type of op; none is how training graphs are.
    """
    attributes = {"use_peephole": True} if gradient == "LSTMBlockCellGrad" else {}
    with tf.Graph().as_default() as graph, _session(tf) as session:
        tensors = {name: tf.zeros(shape) for name, shape in PROBE[gradient].items()}
        with graph._kernel_label_map(labels):
            outputs = getattr(tf.raw_ops, gradient)(**tensors, **attributes)
        try:
            session.run(outputs)
        except tf.errors.InvalidArgumentError as error:
            # Around the kernel's own line TensorFlow says where the node comes from.
            return error.message.split("\n\t [[")[0].splitlines()[-1]
    raise RuntimeError(f"{gradient} did not refuse a malformed call")
