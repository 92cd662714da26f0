"""What a sample of a grid still has."""

from helpers import sampling


def test_a_sample_has_every_feature():
    cases = [(row, column) for row in range(9) for column in "abcdefghijk"]
    some = sampling.sample(cases, lambda case: case, whole=False)
    assert {row for row, _ in some} == set(range(9))
    assert {column for _, column in some} == set("abcdefghijk")
    assert len(some) < len(cases) / 3
    assert some == sorted(some) == sampling.sample(cases, lambda case: case, whole=False)
    assert sampling.sample(cases, lambda case: case, whole=True) == cases
