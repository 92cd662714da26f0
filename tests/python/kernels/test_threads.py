"""The same results bit for bit, however many threads there are and from run to run."""

from blockcell.reference import op_table
from helpers import isolated


def run(threads):
    environment = {"BLOCKCELL_TEST_THREADS": str(threads)}
    return isolated.value(isolated.run("threads", ["digests"], environment)["digests"])


def test_same_bits_for_any_number_of_threads():
    one, two, many = run(1), run(2), run(7)
    assert len(one) >= 5 * len(op_table.variants())
    assert two == one
    assert many == one
