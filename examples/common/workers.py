"""Processes that train one model each, a step at a time, as their parent asks.

`Worker` is the parent's end; `serve` is what runs in the process.
"""

import contextlib
import multiprocessing
import os
import signal
import sys
import traceback


class WorkerError(Exception):
    """A worker failed or died; the message says which and why."""


class Worker:
    """A worker process, seen from the parent. Use it in a `with` statement, which ends it."""

    def __init__(self, name, log, trainer, *arguments):
        """Starts the process.

        Args:
          name: What messages call it.
          log: Path of the file that takes whatever the process writes.
          trainer: The class of what the process makes and asks; a context manager. Its module
            must not import TensorFlow before it is made: the parent imports that module, too.
          *arguments: What it is made of.
        """
        self.name = name
        self.log = str(log)
        # Importing TensorFlow takes seconds: workers are forked from a process that has done that,
        # and nothing else.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["tensorflow"])
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # While it is imported, too.
        self._connection, theirs = context.Pipe()
        self._process = context.Process(
            target=serve, args=(theirs, self.log, trainer, arguments), name=name, daemon=True
        )
        # Ctrl-C reaches the whole process group: only the parent is to act on it.
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            with _outputs_to(self.log):  # TensorFlow writes a line when it is imported.
                self._process.start()
        finally:
            signal.signal(signal.SIGINT, handler)
        theirs.close()

    def __enter__(self):
        """Returns itself."""
        return self

    def __exit__(self, *error):
        """Ends the process, whatever it is doing."""
        self._connection.close()
        self._process.terminate()
        self._process.join()

    def resident_bytes(self):
        """How much of the machine's memory the process has."""
        with open(f"/proc/{self._process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def kill(self):
        """Ends the process at once, as the system does where memory is short."""
        self._process.kill()
        self._process.join()

    def ask(self, what, *arguments):
        """Calls a method of the trainer.

        Args:
          what: Name of the method.
          *arguments: What it is called with.

        Returns:
          What it returned.

        Raises:
          WorkerError: It raised an error, or the process has ended.
        """
        self.send(what, *arguments)
        return self.receive()

    def send(self, what, *arguments):
        """Makes the process call a method of the trainer, and does not wait; see `ask`."""
        with contextlib.suppress(BrokenPipeError):  # what killed it is told by receive
            self._connection.send((what, arguments))

    def receive(self, seconds=None):
        """Returns what a call of `send` returned.

        Args:
          seconds: How long to wait; None for ever.

        Raises:
          WorkerError: As `ask`; or the time is over.
        """
        try:
            if not self._connection.poll(seconds):
                raise WorkerError(
                    f"the worker {self.name} has not answered for {seconds} s; see {self.log}"
                )
            answer, error = self._connection.recv()
        except (EOFError, ConnectionResetError):
            self._process.join()
            code = self._process.exitcode
            how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
            raise WorkerError(f"the worker {self.name} {how}; see {self.log}") from None
        if error is not None:
            raise WorkerError(f"the worker {self.name} failed: {error}\nsee {self.log}")
        return answer


@contextlib.contextmanager
def _outputs_to(log):
    """Has processes that are started meanwhile write to a file."""
    outputs = sys.__stdout__.fileno(), sys.__stderr__.fileno()
    copies = [os.dup(output) for output in outputs]
    try:
        with open(log, "w", encoding="utf-8") as file:
            for output in outputs:
                os.dup2(file.fileno(), output)
        yield
    finally:
        for output, copy in zip(outputs, copies):
            os.dup2(copy, output)
            os.close(copy)


def serve(connection, log, trainer, arguments):
    """Runs in the process: makes the trainer, then answers every request.

    Each answer is a pair: what the method returned, and the text of an error or None.
    """
    with open(log, "a", encoding="utf-8") as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
        os.dup2(file.fileno(), sys.stderr.fileno())
    try:
        with trainer(*arguments) as made:
            while True:
                what, theirs = connection.recv()
                connection.send((getattr(made, what)(*theirs), None))
    except EOFError:
        pass  # the parent has closed its end
    except Exception as error:
        traceback.print_exc()
        with contextlib.suppress(BrokenPipeError):
            connection.send((None, f"{type(error).__name__}: {error}"))
