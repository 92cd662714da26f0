"""Compares our kernels and TensorFlow's with the float64 oracle, over a grid or a graph's calls."""

import xml.etree.ElementTree as ElementTree
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence

import numpy as np

from blockcell.op_table import (
    CLIPPING,
    FORWARD,
    FUNCTIONS,
    GRADIENTS,
    OPS,
    SEQUENCES,
    STOCK,
    variants,
)
from blockcell_tools.reference import inputs as references


class Case(NamedTuple):
    """A call of an op."""

    op: str
    dtype: str
    """`"float32"`, `"float16"` or `"bfloat16"`."""
    attributes: Dict[str, Any]
    sizes: Dict[str, int]
    """batch, input_size, cell_size, and time of the sequences."""

    @property
    def variant(self) -> str:
        """Type and attributes, in words."""
        return ", ".join([self.dtype, *(f"{k}={v}" for k, v in sorted(self.attributes.items()))])

    @property
    def group(self) -> str:
        """The line of a table that the case belongs to: networks of cuDNN have a line a mode."""
        if "rnn_mode" not in self.attributes:
            return self.variant
        return f"{self.dtype}, rnn_mode={self.attributes['rnn_mode']}"

    @property
    def shape(self) -> str:
        """The sizes: time, batch, input_size, cell_size."""
        order = ("time", "batch", "input_size", "cell_size")
        return "x".join(str(self.sizes[name]) for name in order if name in self.sizes)

    def __str__(self) -> str:
        """All of it."""
        return f"{self.op} {self.variant} {self.shape}"


class Result(NamedTuple):
    """What came of a case."""

    case: Case
    error: Optional[float]
    """The worst scaled error of our kernel's outputs; None if it did not run."""
    limit: Optional[float]
    """What was accepted for that output."""
    output: Optional[str]
    """That output."""
    stock_error: Optional[float]
    """The worst scaled error of TensorFlow's kernel; None where there is none to compare."""
    problem: Optional[str]
    """Why the case failed; None if it passed."""


_QUICK = [(1, 1, 1), (3, 5, 17), (5, 19, 33), (0, 3, 5)]
_MORE = [
    *((2, 3, 7), (4, 16, 16), (7, 1, 31), (33, 64, 65), (1, 31, 256), (20, 200, 200)),
    *((100, 40, 24), (3, 0, 5), (3, 5, 0)),
]
_TIMES: Dict[bool, List[int]] = {True: [3], False: [1, 7]}
_CLIPS: Dict[bool, List[float]] = {True: [], False: [0.3]}
_INT8 = [(1, 40, 65), (5, 33, 48), (20, 64, 200)]
_INT8_TIMES: Dict[bool, List[int]] = {True: [12], False: [9, 33]}
INT8_OPS = tuple(op for op in SEQUENCES if op in FORWARD)
"""Those whose weights may be in int8."""


def int8_grid(ops: Sequence[str], quick: bool) -> Iterator[Case]:
    """Sequences at sizes where constant weights are in int8, in float32."""
    for op, dtype, switch in variants([op for op in ops if op in INT8_OPS]):
        if np.dtype(dtype).name == "float32":
            for batch, input_size, cell_size in _INT8:
                for time in _INT8_TIMES[quick]:
                    sizes = dict(time=time, batch=batch, input_size=input_size, cell_size=cell_size)
                    yield Case(op, "float32", dict(switch), sizes)


def grid(ops: Sequence[str], dtypes: Sequence[str], quick: bool) -> Iterator[Case]:
    """Every op, type and option at sizes around the lanes of vectors, at 0 and at 1.

    Args:
      ops: Names of ops.
      dtypes: Names of types; an op is left out for those it does not have.
      quick: Whether to take a few sizes only.
    """
    for op, dtype, switch in variants(ops):
        name = np.dtype(dtype).name
        if name not in dtypes:
            continue
        options: List[Dict[str, Any]] = [dict(switch)]
        if op in CLIPPING:
            options += [dict(switch, cell_clip=clip) for clip in _CLIPS[quick]]
        for attributes in options:
            for batch, input_size, cell_size in _QUICK + ([] if quick else _MORE):
                sizes = dict(batch=batch, input_size=input_size, cell_size=cell_size)
                timed = [sizes]
                if OPS[op].is_sequence:
                    timed = [dict(sizes, time=time) for time in _TIMES[quick]]
                for every in timed:
                    yield Case(op, name, dict(attributes), every)


def check(
    case: Case, seed: int, tolerance: Optional[float], constants: Sequence[str] = ()
) -> Result:
    """Runs a case on both sides and compares both with the oracle.

    Args:
      case: What to run. The library has to be loaded with `take_over=False`.
      seed: Of the inputs.
      tolerance: The scaled error to accept; by default what the op's kernels promise.
      constants: Names of inputs that are constants of our kernel's graph.
    """
    from blockcell_tools import labelled_calls

    dtype = np.dtype(case.dtype).type
    equations = (OPS[case.op].switch, *FUNCTIONS)
    on = {name: value for name, value in case.attributes.items() if name in equations}
    inputs = references.inputs_of(case.op, **case.sizes, dtype=dtype, seed=seed, **on)
    try:
        constants = [name for name in constants if name in inputs]
        got = labelled_calls.run(case.op, inputs, constants=constants, **case.attributes)
        found = references.accuracy(case.op, inputs, got, most=tolerance, **case.attributes)
    except Exception as error:  # Of any kind: a kernel that fails is a finding.
        return Result(case, None, None, None, None, first_line(error))
    return judged(case, found, _stock_error(case, inputs))


def judged(case: Case, found: List[references.Accuracy], stock_error: Optional[float]) -> Result:
    """What comes of a case whose outputs are as accurate as was found."""
    # The output that comes closest to its limit, or is farthest above; NaN counts as most.
    worst = max(found, key=lambda one: np.inf if np.isnan(one.error) else one.error / one.limit)
    problem = None if worst.accurate else str(worst)
    return Result(case, worst.error, worst.limit, worst.output, stock_error, problem)


def _stock_error(case: Case, inputs: Dict[str, np.ndarray]) -> Optional[float]:
    """The worst scaled error of TensorFlow's kernel.

    Sizes of 0 are left out: they end the process in some stock kernels.
    """
    from blockcell_tools import labelled_calls

    if case.op not in STOCK or 0 in case.sizes.values():
        return None
    try:
        got = labelled_calls.run(case.op, inputs, labelled_calls.STOCK_KERNEL, **case.attributes)
    except Exception:  # 1.15's stock kernels lack some shapes.
        return None
    want = references.expected(case.op, inputs, **case.attributes)
    return max(references.scaled_error(got[name], want[name]) for name in want)


def _excess(result: Result) -> float:
    """How close a result comes to its limit; NaN is farthest above."""
    if result.error is None or not result.limit or np.isnan(result.error):
        return float("inf")
    return result.error / result.limit


def first_line(error: Exception) -> str:
    """The first line of what an exception says; its type if it says nothing."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


class Line(NamedTuple):
    """The results of one op, type and set of options."""

    op: str
    kind: str
    """forward or gradient"""
    variant: str
    cases: int
    failed: int
    error: Optional[float]
    output: Optional[str]
    limit: Optional[float]
    stock_error: Optional[float]


def summary(results: List[Result]) -> List[Line]:
    """A line for each op and `Case.group`, with the worst error of either side."""
    groups: Dict[Any, List[Result]] = {}
    for result in results:
        groups.setdefault((result.case.op, result.case.group), []).append(result)
    lines = []
    for (op, variant), group in groups.items():
        ran = [result for result in group if result.error is not None]
        worst = max(ran, key=_excess, default=None)
        stock = [result.stock_error for result in group if result.stock_error is not None]
        lines.append(
            Line(
                op,
                "gradient" if op in GRADIENTS or "Backprop" in op else "forward",
                variant,
                len(group),
                sum(result.problem is not None for result in group),
                worst and worst.error,
                worst and worst.output,
                worst and worst.limit,
                max(stock, key=lambda e: np.inf if np.isnan(e) else e) if stock else None,
            )
        )
    return lines


def as_json(results: List[Result], about: Dict[str, Any]) -> Dict[str, Any]:
    """Everything, for JSON; an error that is no number becomes a string."""

    def plain(value: Any) -> Any:
        return str(value) if isinstance(value, float) and not np.isfinite(value) else value

    rows = []
    for result in results:
        fields = {name: plain(value) for name, value in result._asdict().items()}
        fields["case"] = result.case._asdict()
        rows.append(fields)
    failed = sum(result.problem is not None for result in results)
    return dict(about, cases=len(results), failed=failed, results=rows)


def as_junit(results: List[Result]) -> str:
    """A JUnit report: a test case for each case."""
    failed = sum(result.problem is not None for result in results)
    suite = ElementTree.Element(
        "testsuite", name="blockcell verify", tests=str(len(results)), failures=str(failed)
    )
    for result in results:
        name = f"{result.case.variant} {result.case.shape}"
        case = ElementTree.SubElement(suite, "testcase", classname=result.case.op, name=name)
        if result.problem is not None:
            ElementTree.SubElement(case, "failure", message=result.problem)
    return ElementTree.tostring(suite, encoding="unicode")
