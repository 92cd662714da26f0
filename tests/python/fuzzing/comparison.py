"""Whether two outcomes of a program are the same.

An outcome is a dictionary with `values`, the arrays that were fetched, and where a run failed
`error`, the name of the exception's class, and `message`.
"""

import numpy as np

LIMITS = {"float": 2e-6, "half": 4e-3}
"""How far results may be apart, as a part of the largest element."""
NOISES = {"float": 1e-6, "half": 2e-3}
"""Relative changes of a program's random values that show how it magnifies what is rounded."""
FAILED_PASS = "failed pass"
"""The error of an outcome that is right, but of a graph that a pass left as it was by a fault."""
KINDS = {
    "wrong value": "another value than TensorFlow alone",
    "missing value": "a value that TensorFlow alone computes is not there",
    "error": "an error that TensorFlow alone does not have, or another one",
    "no error": "TensorFlow alone has an error",
    "hang": "a call did not end in time",
    "died": "the process died",
    FAILED_PASS: "a pass failed, and left the graph as it was",
}


def difference(want, got, limit, noisy=()):
    """How an outcome differs from the one that is wanted.

    Args:
      want: An outcome.
      got: An outcome.
      limit: How far values may be apart, as a part of the largest element.
      noisy: Outcomes that are wanted where the program's random values are a little different.

    Returns:
      None, or a kind of `KINDS` and a text.
    """
    if "error" in got or "error" in want:
        return _difference_of_errors(want, got)
    if len(want["values"]) != len(got["values"]):
        return "missing value", f"{len(got['values'])} values of {len(want['values'])}"
    for k, (wanted, value) in enumerate(zip(want["values"], got["values"])):
        changes = [_distance(wanted, one["values"][k]) for one in noisy if "error" not in one]
        text = _difference_of_values(wanted, value, limit, 8 * max(changes, default=0.0))
        if text:
            return "wrong value", f"fetch {k}: {text}"
    return None


def _difference_of_errors(want, got):
    wanted, error = want.get("error"), got.get("error")
    if wanted == error:
        return None
    text = "{} instead of {}: {}".format(
        error or "values", wanted or "values", got.get("message") or want.get("message")
    )
    if error is None:
        return "no error", text
    kinds = {error: error for error in ("hang", "died", FAILED_PASS)}
    kinds["DeadlineExceededError"] = "hang"
    kind = kinds.get(error, "error")
    if "does not have value" in got["message"]:
        kind = "missing value"
    return kind, text


def _difference_of_values(want, got, limit, allowance):
    want, got = np.asarray(want, np.float64), np.asarray(got, np.float64)
    if want.shape != got.shape:
        return f"the shape {got.shape} instead of {want.shape}"
    finite = np.isfinite(want)
    if not np.array_equal(finite, np.isfinite(got)):
        return "not the same elements are numbers"
    error, scale = _distance(want, got), _largest(want[finite])
    if error <= limit * scale + allowance:
        return None
    return f"error {error:.3g} where the largest element is {scale:.3g}"


def _distance(left, right):
    """The largest difference of elements that are numbers."""
    left, right = np.asarray(left, np.float64), np.asarray(right, np.float64)
    if left.shape != right.shape:
        return 0.0
    finite = np.isfinite(left) & np.isfinite(right)
    return _largest(left[finite] - right[finite])


def _largest(array):
    return float(np.abs(array).max()) if array.size else 0.0
