"""What a call must have come to, and what it came to."""

import re
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import numpy as np

from blockcell import op_table

HANDLED, SILENT, UNCLEAR, DIED = "handled", "silent", "unclear", "died"
"""What came of a case.

* handled: a valid call gave the oracle's values, an invalid one the right error.
* silent: an invalid call was accepted, or a valid one gave wrong values or an error.
* unclear: an invalid call is an error of another kind, or one that does not say what is wrong.
* died: the process ended, or did not come back.
"""


class Case(NamedTuple):
    """A call, and how to judge it."""

    op: str
    """The op's name in TensorFlow."""
    what: str
    """What is odd about the call."""
    make: Callable[[], Dict[str, Any]]
    """Returns the inputs: arrays and lists of arrays by name."""
    attributes: Dict[str, Any]
    problem: Callable[[Dict[str, Any]], Optional[str]]
    """Tells of the inputs what is wrong with them. Without `blame` it is the message itself."""
    inaccuracy: Callable[[Dict[str, Any], List[Any]], Optional[str]]
    """Tells of the inputs and of all outputs what is wrong with the latter."""
    blame: Tuple[str, ...] = ()
    """Names of tensors and attributes, one of which the message must name."""


class Answer(NamedTuple):
    """What a call came to: its outputs, or the name and the message of an error."""

    values: Optional[List[Any]]
    error: Optional[str]
    message: str


def verdict(case, inputs, answer, is_ours=True):
    """Judges a call.

    Args:
      case: The `Case`.
      inputs: What its `make` returned.
      answer: The `Answer`.
      is_ours: Whether valid calls must be accepted, and messages clear: else any error will do.

    Returns:
      One of the words above, and an explanation.
    """
    if answer.error and not is_ours:
        return HANDLED, ""
    problem = case.problem(inputs)
    if problem is None:
        if answer.error:
            words = _own_words(case.op, answer.message)
            return SILENT, f"a valid call is refused: {answer.error}: {words}"
        inaccuracy = case.inaccuracy(inputs, answer.values)
        return (SILENT, inaccuracy) if inaccuracy else (HANDLED, "")
    if not answer.error:
        return SILENT, f"accepted, though {problem}"
    if answer.error != "InvalidArgumentError":
        return UNCLEAR, f"{answer.error}: {_own_words(case.op, answer.message)}"
    if case.blame:
        unclear = _unclear(case, inputs, answer.message)
    else:
        unclear = None if problem in answer.message else f"expected: {problem}"
    words = _own_words(case.op, answer.message)
    return (UNCLEAR, f"{unclear}; got: {words}") if unclear else (HANDLED, "")


def _own_words(op, message):
    """The line that the kernel wrote, if there is one; around it TensorFlow says where it was."""
    said = re.search(rf"\b{op}: .*", message)
    return said.group() if said else message


def _unclear(case, inputs, message):
    """What a message lacks: the op, the tensor, the shapes."""
    said = _own_words(case.op, message)
    if said == message and not message.startswith(f"{case.op}: "):
        return "the op is not named"
    said = said[len(f"{case.op}: ") :]
    if not set(re.findall(r"\w+", said)) & set(case.blame):
        return "none of {} is named".format(", ".join(case.blame))
    shapes = re.match(r"(\w+)(?:\[(\d+)\])? must have shape (.*), got (\[[\d, ]*\])", said)
    if shapes is None:
        return None
    tensor, index, expected, got = shapes.groups()
    if tensor not in case.blame:
        return f"{tensor} is blamed"
    if expected == got:
        return f"{tensor} has the shape it must have"
    value = inputs.get(tensor)
    if value is None:  # An output, whose shape follows from others.
        return None
    actual = list(np.shape(value[int(index or 0)] if isinstance(value, list) else value))
    step = actual[1:] if "rows, columns" in expected else actual
    return None if got == str(step) else f"the shape of {tensor} is {actual}"


def inaccuracy(got, want, dtype, limit):
    """What is wrong with outputs: None, or a text.

    Numbers that the oracle cannot tell must be no numbers here either; others must be finite.

    Args:
      got: A list of arrays.
      want: A dictionary of the oracle's arrays.
      dtype: The element type.
      limit: The scaled error to accept.
    """
    if len(got) != len(want):
        return f"{len(got)} outputs, expected {len(want)}"
    for array, (name, wanted) in zip(got, want.items()):
        array = np.asarray(array)
        if array.shape != np.shape(wanted) or array.dtype != dtype:
            shape = np.shape(wanted)
            return f"{name} is {array.dtype} {array.shape}, expected {shape}"
        text = _difference(array, np.asarray(wanted, np.float64), limit)
        if text:
            return f"{name}: {text}"
    return None


def _difference(got, want, limit):
    info = op_table.finfo(got.dtype)
    with np.errstate(all="ignore"):
        rounded = want.astype(got.dtype)
        finite = np.isfinite(rounded)
        if (np.isnan(got) != np.isnan(rounded)).any():
            return "other elements are no numbers than in the oracle"
        infinite = np.isinf(rounded)
        if (got[infinite] != rounded[infinite]).any():
            return "other elements are infinite than in the oracle"
    if not np.isfinite(got[finite]).all():
        return "elements are infinite that are not in the oracle"
    if not finite.any():
        return None
    error = np.abs(got[finite].astype(np.float64) - want[finite]).max()
    # Sums of what is too small for a normal number may be flushed to zero, term by term.
    accepted = limit * np.abs(want[finite]).max() + 1000 * float(info.tiny)
    return None if error <= accepted else f"an error of {error:.3g}, accepted are {accepted:.3g}"
