"""Comparisons that fail a test."""

import numpy as np

from blockcell_tools.reference.inputs import accuracy, scaled_error


def assert_accurate(op, inputs, got, what="", most=None, **attributes):
    """Compares what an op returned with the oracle, as `reference.inputs.accuracy` does."""
    wrong = [one for one in accuracy(op, inputs, got, most, **attributes) if not one.accurate]
    assert not wrong, "; ".join(f"{what or op} {one}" for one in wrong)


def assert_close(got, want, limit, what=""):
    """Compares dictionaries of outputs by `scaled_error`.

    Args:
      got: The outputs.
      want: What they have to be.
      limit: The scaled error to accept.
      what: Words to begin a message with.
    """
    assert set(got) == set(want)
    for name in want:
        error = scaled_error(got[name], want[name])
        assert error <= limit, f"{what} {name}: scaled error {error:.3g} is above {limit:.3g}"


def assert_same_outcome(got, want, limit, what):
    """The same values, with their shapes, or the same error."""
    assert got.get("error") == want.get("error"), what
    for (value, shape), (expected, expected_shape) in zip(
        got.get("values", []), want.get("values", [])
    ):
        assert shape == expected_shape, what
        value, expected = np.asarray(value), np.asarray(expected)
        assert np.array_equal(np.isnan(value), np.isnan(expected)), what
        error = scaled_error(np.nan_to_num(value), np.nan_to_num(expected))
        assert error <= limit, f"{what}: scaled error {error:.3g}"
