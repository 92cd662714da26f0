"""All ops at once in many threads, for `test_faults`."""

import blockcell
from robustness import load


def prepare():
    blockcell.load()


def all_ops_at_once():
    count, wrong = load.run(5.0)
    assert not wrong, sorted(set(wrong))
    return count
