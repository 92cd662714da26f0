"""Random graphs give the same with and without the rewrites; see the package `fuzzing`."""

import pytest
import tensorflow as tf

from fuzzing import generator, programs, shrinker
from fuzzing.runner import Runner
from helpers.sampling import WHOLE

GRAPHS = 3000 if WHOLE else 200
BATCH = 50


@pytest.fixture(scope="module")
def runner():
    with Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def rewritten():
    return []


@pytest.mark.parametrize("first", range(0, GRAPHS, BATCH))
def test_same_results(runner, rewritten, first):
    made = [generator.generate(k, runner.functions) for k in range(first, first + BATCH)]
    verdicts = runner.judge(made)
    rewritten += [any(verdict.rewritten.values()) for verdict in verdicts]
    for verdict in verdicts:
        if verdict.is_finding:
            small = shrinker.shrink(
                verdict.program, lambda some, kind=verdict.kind: runner.fail(some, kind)
            )
            text = "{}: {}\n{}".format(verdict.kind, verdict.text, programs.text(small))
            pytest.fail(text, pytrace=False)
