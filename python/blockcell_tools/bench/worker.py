"""The process that does the timing, for one number of threads.

TensorFlow's pool of threads is made once a process. The parent (`run`) therefore starts one of
these for each number of threads, and the two talk in lines of JSON. The parent writes what to load;
the worker answers what runs there. Then the parent writes one case after the other, and the worker
answers each by its result. Instead of any answer there may be a problem, in words.
"""

import json
import os
import platform
import sys

import numpy as np

import blockcell
from blockcell_tools.bench.agreement import DisagreementError, compare
from blockcell_tools.bench.graphs import SIDES, LabelError, Pair, Sides, configuration, library_info
from blockcell_tools.bench.tables import decode
from blockcell_tools.bench.timing import take_turns

ROUND_SECONDS = 3e-3
"""The least that a round of repetitions should take."""


def answer(serve, problems):
    """Answers lines of JSON on the standard input by lines on the standard output.

    Args:
      serve: Given an iterator of the parent's messages, yields an answer to each.
      problems: Types of exceptions whose words the parent is told.
    """
    # Whatever else writes to the standard output must not get between the lines.
    lines = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def send(message):
        lines.write(json.dumps(message) + "\n")
        lines.flush()

    try:
        for message in serve(json.loads(line) for line in iter(sys.stdin.readline, "")):
            send(message)
    except problems as error:
        send({"problem": str(error)})
        sys.exit(1)


def start(job):
    """Starts TensorFlow and loads the library.

    Args:
      job: A dictionary with the number of `threads`, and the `library`'s file or None. If it has
        `inter_op`, so many steps of sessions run at once.

    Returns:
      The `Sides`, and what the parent is told about what runs here.
    """
    import tensorflow as tf

    module = blockcell.load(job["library"])
    config = configuration(tf, job["threads"], job.get("inter_op", 1))
    info = library_info(tf, module, config)
    if info["taken_over"]:
        raise LabelError(f"the library has replaced stock kernels: {info['taken_over']}")
    versions = {
        "tensorflow": tf.__version__,
        "blockcell": info["version"],
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
    about = {"versions": versions, "isa": info["isa"], "ops": info["ops"]}
    return Sides(tf, module, config), about


def serve(messages):
    """Measures case by case."""
    job = next(messages)
    sides, about = start(job)
    yield about
    checked = set()
    for message in messages:
        case = decode(message["case"])
        for kernel in case.op.kernels:
            if kernel.name not in checked:
                sides.check_labels(kernel)
                checked.add(kernel.name)
        yield measure(sides, case, job["seconds"], job["seed"])


def measure(sides, case, seconds, seed):
    """Compares the kernels' answers, and times them."""
    attributes = {"use_peephole": case.use_peephole}
    with Pair(sides, case.op, case.inputs(seed), attributes, case.constants) as pair:
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


if __name__ == "__main__":
    answer(serve, (DisagreementError, LabelError, blockcell.LibraryError))
