"""Malformed and odd calls in thousands of ways: a sample here, all in `make robustness`."""

import pytest
import tensorflow as tf

from robustness import runner, worker
from robustness.judging import DIED, HANDLED, SILENT

SHARE = 160
OURS = [job for job in runner.jobs(tf.__version__.startswith("1.")) if job.is_ours]


@pytest.fixture(scope="module")
def found():
    return runner.run(OURS, share=SHARE)


@pytest.mark.parametrize("job", OURS, ids=str)
def test_every_call_is_handled(found, job):
    assert not runner.failures(found[job])
    assert set(found[job]) == set(worker.all_ops(True, job.mode))
    assert sum(counts[HANDLED] for counts, _ in found[job].values()) > 80


def test_a_kernel_that_dies_or_accepts_everything_is_found():
    """TensorFlow's own kernels do; what comes after a death is judged, too."""
    op = "BlockLSTMGrad"
    stock = next(job for job in runner.jobs(tf.__version__.startswith("1.")) if not job.is_ours)
    # More bad calls than are shown, and none of those that hang until the worker gives up.
    counts, shown = runner.run([stock], share=41, ops=[op])[stock][op]
    assert counts[DIED] and counts[SILENT] and counts[HANDLED]
    assert len(shown) == min(worker.SHOWN, counts[DIED] + counts[SILENT])
