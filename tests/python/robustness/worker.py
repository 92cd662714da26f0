"""Runs cases: `python -m robustness.worker '{"mode": ..., "ops": ...}'`.

The process forks one that calls the kernels. If that dies, the case at hand has died, and another
one goes on with the next case. The results are one line of JSON at the end.
"""

import collections
import itertools
import json
import os
import select
import signal
import sys
import warnings

import blockcell
from blockcell.op_table import CUDNN, OPS, OWN, STOCK
from robustness import block_ops, calling, cudnn_ops, judging, own_ops, reports

SECONDS = 60
"""How long a case may take: the longest takes 1 s on a busy machine."""
SHOWN = 20
"""How many cases of an op are described that were not handled."""


def cases(ops, share):
    """A share of the cases of each op: one of so many, and always the first one."""
    for op in ops:
        family = block_ops if op in OPS else cudnn_ops if op in CUDNN else own_ops
        for k, case in enumerate(itertools.chain(family.cases(op), reports.cases(op))):
            # Not every nth: cases of one kind may follow each other at that distance.
            if k == 0 or (k * 2654435761 % 2**32) * share < 2**32:
                yield case


def all_ops(is_ours, mode):
    """Every op that is tried; of stock kernels those that CPUs have.

    Where shapes are known while a graph is built, TensorFlow's shape functions refuse calls of its
    ops in their own words. So only the ops of the library are tried there.
    """
    if mode == "known shapes":
        return [*OWN, *own_ops.OPS]
    return [*OPS, *own_ops.OPS, *cudnn_ops.OPS] if is_ours else list(STOCK)


def _judge(case, mode, is_ours):
    inputs = case.make()
    answer = calling.answer(mode, case.op, inputs, case.attributes)
    return judging.verdict(case, inputs, answer, is_ours)


def _run_child(some, mode, is_ours, output):
    """Judges cases, and writes a line for each."""
    for case in some:
        try:
            found = _judge(case, mode, is_ours)
        except Exception as error:  # The judge itself has failed: nothing is known.
            found = (judging.SILENT, f"cannot be judged: {type(error).__name__}: {error}")
        os.write(output, (json.dumps(found) + "\n").encode())


def _run_some(some, mode, is_ours):
    """The verdicts of cases, as far as a process got, and how it ended."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _run_child(some, mode, is_ours, writing)
        os._exit(0)  # Threads of TensorFlow may still be running.
    os.close(writing)
    verdicts, rest = [], b""
    while True:
        ready = select.select([reading], [], [], SECONDS)[0]
        piece = os.read(reading, 1 << 16) if ready else b""
        if not piece:
            break
        *lines, rest = (rest + piece).split(b"\n")
        verdicts += [json.loads(line) for line in lines]
    os.close(reading)
    if not ready:
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    return verdicts, f"status {status}" if ready else f"no answer in {SECONDS} s"


def run(some, mode, is_ours):
    """Judges cases; see the module's documentation.

    Returns:
      For each op a dictionary: how many cases came to what, and descriptions of what went wrong.
    """
    found = {}
    done = 0
    while done < len(some):
        verdicts, end = _run_some(some[done:], mode, is_ours)
        if len(verdicts) < len(some) - done:
            verdicts.append((judging.DIED, end))
        for case, (word, text) in zip(some[done:], verdicts):
            counts, shown = found.setdefault(case.op, (collections.Counter(), []))
            counts[word] += 1
            if word != judging.HANDLED and len(shown) < SHOWN:
                shown.append(f"{case.op}: {case.what}: {word}: {text}")
        done += len(verdicts)
    return found


def main():
    request = json.loads(sys.argv[1])
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    if request["is_ours"]:
        blockcell.load()
    is_ours, mode = request["is_ours"], request["mode"]
    ops = [op for op in all_ops(is_ours, mode) if op in request["ops"] or not request["ops"]]
    found = run(list(cases(ops, request["share"])), mode, is_ours)
    print(json.dumps(found), file=output, flush=True)


if __name__ == "__main__":
    main()
