"""The process that trains one model in one session, a step at a time, as its parent asks.

`Worker` is the parent's end; `serve` is what runs in the process, with what `training` makes of
each request.
"""

import contextlib
import multiprocessing
import os
import signal
import sys
import traceback
from typing import Dict, NamedTuple, Optional, Tuple


class Ready(NamedTuple):
    """What a worker says of itself before the first step."""

    tensorflow: str
    """Version of TensorFlow."""
    info: Optional[str]
    """What the library's op BlockcellInfo returned, JSON; None without the library."""
    refusals: Dict[str, str]
    """How the kernels of unlabelled nodes refuse a malformed call, by op of TensorFlow."""
    labelled_refusals: Dict[str, str]
    """How the kernels labelled ``blockcell`` refuse it; empty without the library."""


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


class WorkerError(Exception):
    """A worker failed or died; the message says which and why."""


class Worker:
    """A worker process, seen from the parent."""

    def __init__(self, model, setting, library, log):
        """Starts the process.

        Args:
          model: The `models.Model` to train.
          setting: The `models.Setting` in which to train it.
          library: Path of libblockcell.so, for settings that load it.
          log: Path of the file that takes whatever the process writes.
        """
        self.name = f"{model.name}-{setting.name}"
        self.log = log
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(
            target=serve, args=(theirs, model, setting, library, log), name=self.name, daemon=True
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

    def step(self, batch, traced=False):
        """Runs one training step.

        Args:
          batch: Arrays by the collection of the placeholder that they are fed to.
          traced: Whether to trace the ops.

        Returns:
          A `Step`.
        """
        return self._ask("trace" if traced else "step", batch)

    def slopes(self, batch):
        """Checks the gradient that the graph has marked for it.

        Args:
          batch: As of `step`.

        Returns:
          `Slopes`, or None if the graph has marked none.
        """
        return self._ask("slopes", batch)

    def stop(self):
        """Ends the process, whatever it is doing."""
        self._connection.close()
        self._process.terminate()
        self._process.join()

    def _ask(self, what, batch):
        with contextlib.suppress(BrokenPipeError):  # what killed it is told by _receive
            self._connection.send((what, batch))
        return self._receive()

    def _receive(self):
        try:
            answer = self._connection.recv()
        except (EOFError, ConnectionResetError):
            self._process.join()
            code = self._process.exitcode
            how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
            raise WorkerError(f"the worker {self.name} {how}; see {self.log}") from None
        if isinstance(answer, str):
            raise WorkerError(f"the worker {self.name} failed: {answer}\nsee {self.log}")
        return answer


def serve(connection, model, setting, library, log):
    """Runs in the process: reports `Ready`, then answers every request."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
    with open(log, "w", encoding="utf-8") as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
        os.dup2(file.fileno(), sys.stderr.fileno())
    try:
        from training import Trainer

        with Trainer(model, setting, library) as trainer:
            connection.send(trainer.ready())
            answers = {
                "step": trainer.step,
                "trace": trainer.traced_step,
                "slopes": trainer.slopes,
            }
            while True:
                what, batch = connection.recv()
                connection.send(answers[what](batch))
    except EOFError:
        pass  # the parent has closed its end
    except Exception as error:
        traceback.print_exc()
        connection.send(f"{type(error).__name__}: {error}")
