"""Random graphs give the same with and without the rewrites; see the package `fuzzing`."""

import numpy as np
import pytest

from fuzzing import generator, programs, shrinker
from fuzzing.comparison import FAILED_PASS, LIMITS, difference
from fuzzing.programs import plain
from fuzzing.runner import Runner
from helpers.sampling import WHOLE

GRAPHS = 2000 if WHOLE else 200
BATCH = 50


@pytest.fixture(scope="module")
def runner():
    with Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def verdicts(runner):
    """What came of the programs of all seeds."""
    judged = []
    for first in range(0, GRAPHS, BATCH):
        seeds = range(first, first + BATCH)
        judged += runner.judge([generator.generate(seed, runner.functions) for seed in seeds])
    return judged


@pytest.mark.parametrize("first", range(0, GRAPHS, BATCH))
def test_same_results(runner, verdicts, first):
    for verdict in verdicts[first : first + BATCH]:
        if verdict.is_finding:
            small = shrinker.small(runner, verdict, tries=300)
            text = f"{verdict.kind}: {verdict.text}\n{programs.text(small)}"
            pytest.fail(text, pytrace=False)


def test_graphs_are_of_use(verdicts):
    """Most graphs have something to rewrite, and few are errors with TensorFlow alone."""
    rewritten = [any(verdict.rewritten.values()) for verdict in verdicts]
    errors = [verdict for verdict in verdicts if verdict.error is not None]
    own = [verdict for verdict in verdicts if verdict.kind is not None and not verdict.is_finding]
    assert sum(rewritten) > len(verdicts) / 2
    assert len(errors) < len(verdicts) / 20
    assert len(own) < len(verdicts) / 20


def test_a_process_that_dies_is_a_result(runner):
    program = generator.generate(1, runner.functions)
    runner.kill_ours()
    assert [verdict.kind for verdict in runner.judge([program, program])] == ["died", None]


WANT = {"values": [np.array([1.0, -2.0])]}
TIMEOUT = {"values": [], "error": "DeadlineExceededError", "message": ""}
MISSING = {
    "values": [],
    "error": "InvalidArgumentError",
    "message": "Retval[0] does not have value",
}
OTHER = {"values": [], "error": "NotFoundError", "message": "no such resource"}


@pytest.mark.parametrize(
    ("want", "got", "kind"),
    [
        (WANT, WANT, None),
        (WANT, {"values": [np.array([1.0, -2.000003])]}, None),
        (WANT, {"values": [np.array([1.0, -2.00001])]}, "wrong value"),
        (WANT, {"values": [np.array([1.0, np.nan])]}, "wrong value"),
        (WANT, {"values": [np.array([[1.0, -2.0]])]}, "wrong value"),
        (WANT, {"values": []}, "missing value"),
        (WANT, MISSING, "missing value"),
        (WANT, TIMEOUT, "hang"),
        (WANT, OTHER, "error"),
        (OTHER, OTHER, None),
        (OTHER, dict(OTHER, error="InternalError"), "error"),
        (OTHER, WANT, "no error"),
        (WANT, dict(WANT, error=FAILED_PASS, message=""), FAILED_PASS),
        (OTHER, dict(WANT, error=FAILED_PASS, message=""), FAILED_PASS),
    ],
)
def test_comparison(want, got, kind):
    found = difference(want, got, LIMITS["float"])
    assert (found and found[0]) == kind


def test_comparison_allows_what_a_small_change_of_the_input_does():
    got = {"values": [np.array([1.0, -2.0003])]}
    changed = [{"values": [np.array([1.0, -2.0 - change])]} for change in (0.0, 1e-4, 1e-5)]
    assert difference(WANT, got, LIMITS["float"], changed) is None
    assert difference(WANT, got, LIMITS["float"], changed[:1] + changed[2:])[0] == "wrong value"


def test_a_race_is_no_program():
    """A variable that may change while it is read has no single value."""
    nodes = [
        plain("Variable", "v", [], "float", start=None),
        plain("Tanh", "read", ["v"], "float"),
        plain("Assign", "change", ["v", "read"], "float"),
    ]
    run = {"feeds": {}, "fetches": ["read"], "targets": ["change"], "stages": None}
    assert not programs.ordered(nodes, run)
    nodes[2]["after"] = ["read"]
    assert programs.ordered(nodes, run)
