"""The memory of the process over many calls of every op: for `test_memory`, and `make leaks`.

python leaks.py [CALLS]
"""

import ctypes
import gc
import os
import re
import sys

import blockcell
from helpers import every_op

COPIES = 25  # Nodes of an op in one graph.
ROUNDS = 4
PAGE = os.sysconf("SC_PAGESIZE")


def prepare():
    blockcell.load(take_over=False)


_NAMES = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"


class _Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in _NAMES.split(" ")]


def in_use():
    """Bytes that malloc has given out; 0 where the C library does not tell (glibc before 2.33)."""
    function = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if function is None:
        return 0
    function.restype = _Mallinfo
    info = function()
    return info.uordblks + info.hblkhd


def resident():
    """Bytes of the process that are in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * PAGE


def growth(call, count):
    """How much memory grows in each of some rounds of so many calls together: in use, and resident.

    TensorFlow keeps some of what it allocates, in the first runs most. A leak is in each round.
    """
    runner = every_op.Runner(call, copies=COPIES, threads=2)

    def run(times):
        for _ in range(times):
            runner.run()
        gc.collect()
        return in_use(), resident()

    before = run(max(40, count // COPIES // 10))
    found = []
    for _ in range(ROUNDS):
        after = run(count // COPIES // ROUNDS)
        found.append([after[n] - before[n] for n in range(2)])
        before = after
    runner.close()
    return found


def leaks(rounds, count):
    """Whether each round leaves 16 bytes a call. With its header, the least of malloc takes 32."""
    return min(used for used, _ in rounds) > 16 * count // ROUNDS


def short():
    """As `main`, with fewer calls, and one variant of each op."""
    count = 2000
    of_ops = {re.split("[- ]", call.name)[0]: call for call in every_op.calls()}
    for call in of_ops.values():
        rounds = growth(call, count)
        assert not leaks(rounds, count), f"{call.name}: {rounds} bytes more"


def main():
    """Prints a table, and fails if an op leaks."""
    count = int(sys.argv[1]) if sys.argv[1:] else 100_000
    prepare()
    print("| call | calls | in use, bytes more | in the least round | resident, KiB more |")
    print("|---|---|---|---|---|")
    leaking = []
    for call in every_op.calls():
        rounds = growth(call, count)
        used, memory = (sum(one[n] for one in rounds) for n in range(2))
        least = min(one[0] for one in rounds)
        print(f"| {call.name} | {count} | {used} | {least} | {memory // 1024} |", flush=True)
        if leaks(rounds, count) or memory > 16 * count:
            leaking.append(call.name)
    sys.exit(f"memory grows in {leaking}" if leaking else None)


if __name__ == "__main__":
    main()
