"""The same results bit for bit, however many threads there are and from run to run."""

import functools

import pytest
import tensorflow as tf

import blockcell
from blockcell import op_table
from helpers import isolated, sampling

NUMBERS = (1, 2, 3, 8)
LOWER = "avx2"
LOWER_NUMBERS = NUMBERS if sampling.WHOLE else (1, 8)
"""On an instruction set below the machine's best."""


@functools.lru_cache(maxsize=None)
def outcomes(number, isa):
    """What a process with so many threads says; on the machine's best instruction set for None."""
    environment = {"BLOCKCELL_TEST_THREADS": str(number), "BLOCKCELL_ISA": isa}
    return isolated.run("threads", ["digests", "processors"], environment)


def digests(number, isa):
    return isolated.value(outcomes(number, isa)["digests"])


def assert_the_same(numbers, isa):
    one, *others = (digests(number, isa) for number in numbers)
    assert len(one) >= 5 * len(op_table.variants())
    for other in others:
        assert other == one


@pytest.mark.once
def test_same_bits_for_any_number_of_threads():
    assert_the_same(NUMBERS, None)


@pytest.mark.once
def test_same_bits_on_a_lower_instruction_set():
    if blockcell.info()["isa"] not in ("avx512", "avx512_vnni", "avx512_bf16", "avx512_amx"):
        pytest.skip(f"{LOWER} is the machine's best, or it has none")
    assert_the_same(LOWER_NUMBERS, LOWER)
    assert digests(1, LOWER) != digests(1, None), "BLOCKCELL_ISA has done nothing"


@pytest.mark.once
def test_threads_may_run_where_they_might_before():
    for number in NUMBERS:
        assert len(isolated.value(outcomes(number, None)["processors"])) == 1


def test_threads_that_move_may_run_where_they_might_before():
    # Helpers move by giving up processors for a moment.
    environment = {"BLOCKCELL_TEST_THREADS": "8", "BLOCKCELL_MOVE_THREADS": "1"}
    found = isolated.run("threads", ["digests", "processors"], environment)
    assert isolated.value(found["digests"]) == digests(1, None)
    assert len(isolated.value(found["processors"])) == 1


@pytest.mark.skipif(
    not hasattr(tf.config.experimental, "enable_op_determinism"), reason="TensorFlow 2.8 and later"
)
def test_with_op_determinism():
    """All ops run with TensorFlow's switch, and change no bit."""
    name = "digests_of_deterministic_ops"
    environment = {"BLOCKCELL_TEST_THREADS": "2", "BLOCKCELL_ISA": None}
    found = isolated.value(isolated.run("threads", [name], environment)[name])
    assert found == digests(2, None)


def test_other_ops_have_their_turn_beside_long_sequences():
    # Where processors are enough, each sequence has a thread of the pool to help it. Products get
    # it in between. If sequences kept their helpers to the end, up to three products would run:
    # some before the helpers come, one until a sequence ends.
    found = isolated.value(isolated.run("pool_turns", ["waits"])["waits"])
    print(
        f"{found['products']} products beside sequences of {found['sequences']:.3f} s; "
        f"the longest took {found['longest']:.4f} s"
    )
    assert found["products"] >= 10, found
