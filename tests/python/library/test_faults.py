"""Load and faults: many threads, cancelled and failed steps, and forked processes."""

import pytest

from helpers import isolated

FAULTS = [
    "steps_that_take_too_long",
    "sessions_that_are_closed",
    "steps_that_fail_midway",
]


@pytest.fixture(scope="module")
def outcomes():
    return isolated.run("faults", FAULTS)


@pytest.mark.parametrize("name", FAULTS)
def test_fault(outcomes, name):
    isolated.value(outcomes[name])


def test_fork_after_loading():
    """Every isolated test has forked before loading."""
    name = "fork_after_loading"
    isolated.value(isolated.run("faults", [name])[name])


def test_all_ops_at_once_in_many_threads():
    name = "all_ops_at_once"
    assert isolated.value(isolated.run("load", [name])[name]) > 100
