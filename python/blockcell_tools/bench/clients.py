"""Several clients at once: each calls again and again, and checks every answer."""

import gc
import threading
import time
from typing import Any, Callable, Dict, List, NamedTuple, Sequence

import numpy as np

from blockcell_tools.bench.machine import Neighbours
from blockcell_tools.reference.inputs import scaled_error

MOST_SECONDS = 600.0
"""How long a client that does not answer is waited for."""


class AnswerError(Exception):
    """A client got another answer than it gets alone, or none; says which."""


class Client(NamedTuple):
    """What one client does."""

    call: Callable[[], Any]
    """Makes its call, and returns the array."""
    answer: np.ndarray
    """What the call returns where nobody else calls."""
    largest_error: float
    """How much an answer may differ from that, relative to the largest element."""

    def check(self) -> float:
        """Calls once; returns the seconds that it took, without those of the check."""
        start = time.perf_counter()
        answer = self.call()
        seconds = time.perf_counter() - start
        if not np.array_equal(answer, self.answer):
            error = scaled_error(answer, self.answer)
            # Written so that NaN, which compares false, does not pass.
            if not error <= self.largest_error:
                raise AnswerError(f"an answer differs from that without others by {error:.1e}")
        return seconds


def load(clients: Sequence[Client], seconds: float, warm: float) -> Dict[str, Any]:
    """Lets clients call at the same time, each in a thread of its own.

    Args:
      clients: Them.
      seconds: How long. A call that has begun by then is waited for.
      warm: How long they call before, which does not count.

    Returns:
      The `latencies` of all calls in seconds, the `rate` of calls per second, and `spent` of
      `blockcell_tools.bench.machine.Neighbours`.

    Raises:
      AnswerError: An answer is wrong, or a call failed.
    """
    together, errors = threading.Barrier(len(clients) + 1), []
    found: List[List[float]] = [[] for _ in clients]
    rates = [0.0] * len(clients)

    def work(number: int) -> None:
        try:
            together.wait(MOST_SECONDS)
            _until(time.perf_counter() + warm, clients[number])
            start = time.perf_counter()
            found[number] = _until(start + seconds, clients[number])
            rates[number] = len(found[number]) / (time.perf_counter() - start)
        except Exception as error:  # Of whatever is called.
            errors.append(f"client {number} of {len(clients)}: {error}")

    threads = [
        threading.Thread(target=work, args=[number], daemon=True) for number in range(len(clients))
    ]
    gc.collect()
    gc.disable()
    try:
        for thread in threads:
            thread.start()
        neighbours = Neighbours()
        together.wait(MOST_SECONDS)
        for thread in threads:
            thread.join(MOST_SECONDS)
        spent = neighbours.spent()
    finally:
        gc.enable()
    if any(thread.is_alive() for thread in threads):
        errors.append("a client waits for its answer without an end")
    if errors:
        raise AnswerError(errors[0])
    return {"latencies": sum(found, []), "rate": sum(rates), "spent": spent}


def _until(end: float, client: Client) -> List[float]:
    """Lets a client call until then; returns the seconds of each call, at least of one."""
    latencies = [client.check()]
    while time.perf_counter() < end:
        latencies.append(client.check())
    return latencies


class Service(NamedTuple):
    """What clients got."""

    calls: int
    calls_per_second: float
    """The median of the rounds."""
    p50: float
    """Half of all calls took at most so many seconds."""
    p99: float
    """99 of 100 calls did."""

    def cells(self) -> List[str]:
        """It in a table: calls per second, and p50 and p99 in milliseconds."""
        return [f"{self.calls_per_second:,.0f}", f"{1e3 * self.p50:.3g}", f"{1e3 * self.p99:.3g}"]


def service(loads: Sequence[Dict[str, Any]]) -> Service:
    """What several rounds of `load` come to."""
    latencies = np.concatenate([one["latencies"] for one in loads])
    p50, p99 = np.percentile(latencies, [50, 99])
    rate = float(np.median([one["rate"] for one in loads]))
    return Service(len(latencies), rate, float(p50), float(p99))
