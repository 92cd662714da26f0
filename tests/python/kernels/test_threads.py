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


@pytest.mark.parametrize("moves", ["0", "1"])
def test_threads_may_run_where_they_might_before(outcomes, moves):
    if moves == "1":
        # Helpers move by giving up processors for a moment.
        environment = {"BLOCKCELL_TEST_THREADS": "7", "BLOCKCELL_MOVE_THREADS": moves}
        outcomes = {7: isolated.run("threads", ["digests", "processors"], environment)}
    for outcome in outcomes.values():
        assert len(isolated.value(outcome["processors"])) == 1


def test_other_ops_have_their_turn_beside_long_sequences():
    # Each sequence has a thread of the pool to help it. Products get it in between.
    found = isolated.value(isolated.run("turns", ["waits"])["waits"])
    print(
        f"{found['products']} products beside sequences of {found['sequences']:.3f} s; "
        f"the longest took {found['longest']:.4f} s"
    )
    assert found["products"] >= 10, found
