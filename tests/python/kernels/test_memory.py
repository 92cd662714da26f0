"""What memory holds before calls, what it holds after many, and what happens without any."""

import pytest

from helpers import isolated

# What malloc writes into memory that it gives out: numbers of all magnitudes, as float and as half.
FILLS = (0x00, 0x7F, 0x80)


def _variables(fill):
    """Has malloc fill all memory, that which it keeps for reuse included."""
    return {"GLIBC_TUNABLES": f"glibc.malloc.perturb={fill ^ 0xFF}:glibc.malloc.tcache_count=0"}


@pytest.fixture(scope="module")
def outcomes():
    """What the processes say, by what their heap is filled with."""
    return {fill: isolated.run("heap", ["fill", "digests"], _variables(fill)) for fill in FILLS}


@pytest.mark.once
def test_the_fill_reaches_tensors(outcomes):
    for fill in FILLS:
        assert isolated.value(outcomes[fill]["fill"]) == [fill]


@pytest.mark.once
def test_results_do_not_depend_on_the_heap(outcomes):
    first, *others = (isolated.value(outcomes[fill]["digests"]) for fill in FILLS)
    assert len(first) > 200
    for name, (once, again) in first.items():
        assert once == again, name
        for other in others:
            assert other[name] == [once, once], name


@pytest.mark.once
def test_calls_leave_no_memory_behind():
    isolated.value(isolated.run("leaks", ["short"])["short"])


def test_outputs_that_no_memory_could_hold_are_refused():
    isolated.value(isolated.run("no_memory", ["outputs_too_large"])["outputs_too_large"])
