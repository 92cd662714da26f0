"""Prints how many real cores the processors have: `python -m blockcell_tools.bench.cores`.

Virtual processors that share a core share its multiply-adds. So products of NumPy in as many
threads as there are processors are compared with those in one. The process has to begin with
`OPENBLAS_NUM_THREADS=1` and the like, or each product has threads of its own.
"""

import os
import threading
import time
from typing import List

import numpy as np

SIZE = 160
"""Of the matrices, which fit into a core's own cache."""
SECONDS, BURSTS = 0.02, 6
"""Length of a burst, and how many there are, of which the best counts: some find all cores free."""


def rate(threads: int) -> float:
    """Products a second of all threads."""
    together = threading.Barrier(threads)
    counts: List[float] = [0.0] * threads

    def work(number: int) -> None:
        left = np.ones([SIZE, SIZE], np.float32)
        right, out = left.copy(), left.copy()
        together.wait()
        start = time.perf_counter()
        count = 0
        while time.perf_counter() < start + SECONDS:
            np.dot(left, right, out)
            count += 1
        counts[number] = count / (time.perf_counter() - start)

    workers = [threading.Thread(target=work, args=[number]) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(counts)


def main() -> None:
    """Measures one thread and all in turns."""
    processors = len(os.sched_getaffinity(0))
    rates = [(rate(1), rate(processors)) for _ in range(BURSTS)]
    one, all_together = (max(found) for found in zip(*rates))
    # On a busy machine the one thread may have waited more than all.
    print(round(min(all_together / one, processors), 2))


if __name__ == "__main__":
    main()
