"""Every crash that is known of TensorFlow's kernels of these ops: an error, or the right values.

The names are those of advisories and issues; `robustness/reports.py` has the calls.
"""

import pytest

from helpers import isolated
from robustness.reports import REPORTS


@pytest.fixture(scope="module")
def outcomes():
    return isolated.run("reported_crashes", list(REPORTS))


@pytest.mark.parametrize("name", list(REPORTS))
def test_reported_crash(outcomes, name):
    isolated.value(outcomes[name])
