"""What a comparison finds out, in one form for models and programs."""

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from blockcell_tools.bench.report import ratio_quartiles

LIMITS = {"highest": 1e-3, "high": 3e-3, "medium": 3e-2}
"""How much results may differ by rounding, relative to the largest element, by the precision of
products: many layers, or some steps of training, add it up."""
INT8_LIMIT = 0.1
"""The same where weights are in int8."""


class CompareError(Exception):
    """The model or program cannot be compared; says why."""


class Times(NamedTuple):
    """Seconds of a step."""

    median: float
    quartiles: Tuple[float, float]


class Row(NamedTuple):
    """How long a step takes without and with the library."""

    step: str
    """What a step is."""
    threads: Optional[int]
    """None where a program decides."""
    steps: int
    """How many were timed on each side; of a model, rounds of calls."""
    without: Times
    ours: Times
    ratio: float
    """How many times as fast it is with the library: the median of the ratios of single steps."""
    quartiles: Tuple[float, float]
    """Of these ratios."""


class Difference(NamedTuple):
    """How much numbers differ that both sides compute."""

    what: str
    largest: float
    """Relative to the largest element."""
    mean: Optional[float] = None
    """The same of the mean, where it was computed."""


class Answers(NamedTuple):
    """How many answers of a classifier change."""

    what: str
    """The output with the probabilities."""
    changed: int
    of: int


class Found(NamedTuple):
    """All that was found out."""

    about: Dict[str, Any]
    """Date, command, machine, versions, instruction set."""
    kind: str
    """What was compared, such as "SavedModel" or "program"."""
    rows: List[Row]
    memory: Dict[str, int]
    """The most that each side's process had resident, in bytes: "without" and "ours"."""
    ran: Dict[str, int]
    """How often each kernel has computed, by op: in a call of a model, or in all of a program."""
    stays: List[str]
    """What does not run on the kernels, and why."""
    differences: List[Difference]
    losses: Dict[str, Dict[str, List[float]]]
    """Of a program: what each of its steps returned that is one number, by name and side."""
    seconds: Dict[str, float]
    """Of a program: how long all of it took, by side."""
    layers: Dict[str, Dict[str, Any]] = {}
    """Of a model with weights in int8: what `blockcell.int8_errors` gives of each layer."""
    answers: Sequence[Answers] = ()
    """Of a model with weights in int8 that classifies."""

    @property
    def precision(self) -> str:
        """The level of the library's matrix products."""
        return str(self.about.get("float32_matmul_runs") or "highest")

    @property
    def in_int8(self) -> bool:
        """Whether weights are to be in int8."""
        return self.about.get("weights") not in (None, "float32")

    @property
    def worst(self) -> Optional[Difference]:
        """The largest difference; None if nothing was compared. NaN is the largest."""
        key = [(np.inf if np.isnan(one.largest) else one.largest) for one in self.differences]
        return self.differences[int(np.argmax(key))] if key else None

    @property
    def agrees(self) -> bool:
        """Whether no difference is larger than rounding explains."""
        limit = INT8_LIMIT if self.in_int8 else LIMITS[self.precision]
        return all(one.largest <= limit for one in self.differences)

    def as_json(self) -> Dict[str, Any]:
        """The same for JSON, with what the screen says of it."""
        worst = self.worst
        content = dict(self.about, **self._asdict())
        del content["about"]
        content["rows"] = [_plain(row) for row in self.rows]
        content["differences"] = [one._asdict() for one in self.differences]
        content["answers"] = [one._asdict() for one in self.answers]
        content["largest_difference"] = None if worst is None else worst.largest
        content["agrees"] = self.agrees
        content["advice"] = self.advice()
        return content

    def advice(self) -> str:
        """One line: what to do."""
        if not self.ran:
            return (
                "Nothing runs on blockcell's kernels: docs/graphs.md and docs/keras.md list what "
                "is supported."
            )
        if not self.agrees:
            return "The results differ by more than rounding: see above before you use it."
        if not self.rows:
            return "No step was timed: see the times of the whole program."
        main = max(self.rows, key=lambda row: row.steps * row.without.median)
        use = self.about["use"]
        if main.quartiles[0] > 1.0:
            rest = " What is not on the kernels is listed above." if self.stays else ""
            return f"{main.ratio:.2f} times as fast with blockcell. To use it, {use}.{rest}"
        if main.quartiles[1] < 1.0:
            return f"Slower with blockcell: {main.ratio:.2f} times as fast. Do not use it here."
        return (
            f"No difference: {main.ratio:.2f} times as fast, with quartiles on both sides of 1. "
            "A longer comparison may show one."
        )


def answers_of(what: str, ours: Any, theirs: Any) -> Optional[Answers]:
    """How many answers change, of an output whose last axis has the probabilities of classes.

    Returns:
      None if it has none: numbers from 0 to 1 that add up to 1, or a single one for two classes.
    """
    if theirs.ndim < 2 or theirs.size == 0 or not np.all((theirs >= 0) & (theirs <= 1)):
        return None
    if theirs.shape[-1] == 1:
        chosen = [side[..., 0] > 0.5 for side in (ours, theirs)]
    elif np.allclose(theirs.sum(-1), 1.0, atol=1e-3):
        chosen = [side.argmax(-1) for side in (ours, theirs)]
    else:
        return None
    return Answers(what, int(np.sum(chosen[0] != chosen[1])), int(chosen[0].size))


def _plain(row: Row) -> Dict[str, Any]:
    times = {name: getattr(row, name)._asdict() for name in ("without", "ours")}
    return dict(row._asdict(), **times)


def row_of(
    step: str, threads: Optional[int], without: Sequence[float], ours: Sequence[float]
) -> Row:
    """The row of the seconds of steps, which are the same ones on both sides."""
    return Row(
        *(step, threads, len(ours), _times(without), _times(ours)),
        *ratio_quartiles(without, ours),
    )


def _times(seconds: Sequence[float]) -> Times:
    low, median, high = np.percentile(np.array(seconds), [25, 50, 75])
    return Times(float(median), (float(low), float(high)))
