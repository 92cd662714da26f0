"""The process that does the timing, for one number of threads.

TensorFlow's pool of threads is made once a process. The parent (`bench.__main__`) therefore starts
one of these for each number of threads, writes a job in JSON to its standard input, and reads
lines of JSON from its standard output: what runs there first, then a result for each case; or a
problem, in words.
"""

import json
import os
import platform
import sys

import numpy as np

import blockcell
from bench.graphs import SIDES, Pair, configuration, library_info
from bench.ops import Case
from bench.timing import take_turns

ROUND_SECONDS = 3e-3
"""The least that a round of repetitions should take."""

LARGEST_ERROR = {"float32": 4e-6, "half": 3e-2}
"""How much an output may differ, relative to its largest element. The bound for half is what the
stock kernels need, which round to half after every step."""


class DisagreementError(Exception):
    """The two kernels do not compute the same."""


def main():
    """Does the job."""
    # Whatever else writes to the standard output must not get between the lines.
    lines = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def send(message):
        lines.write(json.dumps(message) + "\n")
        lines.flush()

    job = json.load(sys.stdin)
    try:
        work(job, send)
    except (DisagreementError, blockcell.LibraryError) as error:
        send({"problem": str(error)})
        sys.exit(1)


def work(job, send):
    """Measures all cases of a job, and sends what it finds."""
    import tensorflow as tf

    module = blockcell.load(job["library"])
    config = configuration(tf, job["threads"])
    info = library_info(tf, module, config)
    if info["taken_over"]:
        raise RuntimeError(f"the library has replaced stock kernels: {info['taken_over']}")
    versions = {
        "tensorflow": tf.__version__,
        "blockcell": info["version"],
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
    send({"versions": versions, "isa": info["isa"]})
    for fields in job["cases"]:
        send(measure(tf, Case(*fields), config, job["seconds"], job["seed"]))


def measure(tf, case, config, seconds, seed):
    """Compares the kernels' answers, and times them."""
    with Pair(tf, case, config, seed) as pair:
        errors = compare(case, *(pair.outputs(side) for side in SIDES))
        turns = take_turns(
            lambda length: [pair.chain(side, length) for side in SIDES], ROUND_SECONDS, seconds
        )
    return {
        "repetitions": turns.repetitions,
        "stock": turns.first,
        "ours": turns.second,
        "neighbours": turns.neighbours,
        "errors": errors,
    }


def compare(case, stock, ours):
    """Checks that two sets of outputs agree, and returns the scaled error of each output."""
    errors = {}
    for name, want in stock.items():
        want, got = want.astype(np.float64), ours[name].astype(np.float64)
        error = float(np.max(np.abs(got - want), initial=0.0))
        if error > 0.0:
            error /= max(float(np.max(np.abs(want))), np.finfo(np.float64).tiny)
        # Written so that NaN, which compares false, does not pass.
        if not error <= LARGEST_ERROR[case.dtype]:
            raise DisagreementError(
                f"{case}: {name} differs by {error:.1e} of its largest element, allowed are "
                f"{LARGEST_ERROR[case.dtype]:.1e}"
            )
        errors[name] = error
    return errors


if __name__ == "__main__":
    main()
