"""The same results bit for bit, however many threads there are and from run to run."""

import pytest

from blockcell import op_table
from helpers import isolated

NUMBERS = (1, 2, 7)


@pytest.fixture(scope="module")
def outcomes():
    """What the processes say, by the number of threads."""
    return {
        number: isolated.run(
            "threads", ["digests", "processors"], {"BLOCKCELL_TEST_THREADS": str(number)}
        )
        for number in NUMBERS
    }


def test_same_bits_for_any_number_of_threads(outcomes):
    one, *others = (isolated.value(outcomes[number]["digests"]) for number in NUMBERS)
    assert len(one) >= 5 * len(op_table.variants())
    for other in others:
        assert other == one


def test_threads_may_run_where_they_might_before(outcomes):
    # Helpers move by giving up processors for a moment.
    for number in NUMBERS:
        assert len(isolated.value(outcomes[number]["processors"])) == 1
