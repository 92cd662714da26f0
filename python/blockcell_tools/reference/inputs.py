"""Random but reproducible inputs of the ops, and how far an output is off the oracle."""

from typing import Any, Dict, List, Mapping, NamedTuple, Optional

import numpy as np

from blockcell.op_table import (
    GRADIENTS,
    LENGTH,
    OPS,
    SEQUENCES,
    USE_PEEPHOLE,
    WEIGHT,
    in_numbers,
)
from blockcell_tools.reference import oracle

Arrays = Dict[str, np.ndarray]

TIME = 3
"""Steps of a sequence, unless told otherwise."""


def shapes(
    op: str, batch: int, input_size: int, cell_size: int, time: int = TIME
) -> Dict[str, List[int]]:
    """The shape of every input, in numbers."""
    return in_numbers(OPS[op].inputs, _sizes(batch, input_size, cell_size, time))


def _sizes(batch: int, input_size: int, cell_size: int, time: int) -> Dict[str, int]:
    return dict(batch=batch, input_size=input_size, cell_size=cell_size, time=time)


def _lengths(shape: List[int], time: int, length: Any, random: np.random.RandomState) -> np.ndarray:
    """A value for seq_len_max, or for sequence_length: by default all steps, or random ones."""
    if length is None:
        length = random.randint(0, time + 1, shape) if shape else time
    return np.full(shape, length, np.int64)


def forward_inputs(
    op: str,
    batch: int,
    input_size: int,
    cell_size: int,
    time: int = TIME,
    dtype: type = np.float32,
    seed: int = 0,
    length: Any = None,
) -> Arrays:
    """Inputs of an op, or of the op whose gradient it is; they keep the gates off saturation.

    Args:
      op: The op's name.
      batch: A size, as the next ones.
      input_size: A size.
      cell_size: A size.
      time: A size, for the sequences only.
      dtype: The element type.
      seed: Changes the random numbers.
      length: What seq_len_max, or every element of sequence_length, shall be. By default all steps
        take part, or a random number for each row.

    Returns:
      Arrays by name.
    """
    op = OPS[op].forward or op
    seeds = (seed, batch, input_size, cell_size) + ((time,) if op in SEQUENCES else ())
    random = np.random.RandomState(seeds)
    inputs = {}
    for name, shape in shapes(op, batch, input_size, cell_size, time).items():
        kind = OPS[op].inputs[name].kind
        if kind == LENGTH:
            inputs[name] = _lengths(shape, time, length, random)
            continue
        value = np.asarray(random.standard_normal(shape))
        if kind == WEIGHT and len(shape) == 2:
            value /= np.sqrt(max(1, input_size + cell_size))
        inputs[name] = value.astype(dtype)
    return inputs


def forward(op: str, inputs: Mapping[str, Any], **attributes: Any) -> Arrays:
    """The outputs of an op, or of the op whose gradient it is, in float64, without clipping."""
    op = OPS[op].forward or op
    if OPS[op].switch == USE_PEEPHOLE:
        attributes.setdefault("cell_clip", 0.0)
    return expected(op, inputs, **attributes)


def inputs_of(
    op: str,
    batch: int,
    input_size: int,
    cell_size: int,
    time: int = TIME,
    length: Any = None,
    dtype: type = np.float32,
    seed: int = 0,
    **attributes: Any,
) -> Arrays:
    """Inputs of an op.

    Those of a gradient are the inputs of its forward op, what that one saved, and random gradients.

    Args:
      op: The op's name.
      batch: A size, as the next ones.
      input_size: A size.
      cell_size: A size.
      time: A size, for the sequences only.
      length: As in `forward_inputs`.
      dtype: The element type.
      seed: Changes the random numbers.
      **attributes: Those of the op that say which equations it has.

    Returns:
      Arrays by name.
    """
    sizes = (batch, input_size, cell_size, time)
    inputs = forward_inputs(op, *sizes, dtype=dtype, seed=seed, length=length)
    if OPS[op].forward:
        saved = forward(op, inputs, **attributes)
        random = np.random.RandomState([seed + 1, batch, input_size, cell_size])
        for name, shape in shapes(op, *sizes).items():
            if name not in inputs:
                incoming = random.standard_normal(shape)
                inputs[name] = np.asarray(saved.get(name, incoming)).astype(dtype)
    return inputs


def expected(op: str, inputs: Mapping[str, Any], **attributes: Any) -> Arrays:
    """What an op has to return, from the oracle: in float64, by name."""
    return oracle.FUNCTIONS[op](**inputs, **attributes)


def scaled_error(got: Any, want: Any) -> float:
    """The error max |got - want| / max |want|, where a `want` of zeros counts as 1.

    Raises:
      ValueError: The shapes differ.
    """
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    if got.shape != want.shape:
        raise ValueError(f"an output has the shape {got.shape}, expected {want.shape}")
    if want.size == 0:
        return 0.0
    scale = np.abs(want).max()
    return float(np.abs(got - want).max() / (scale if scale > 0 else 1.0))


def limit(op: str, dtype: type) -> float:
    """The scaled error that our kernels may have against the oracle.

    Half and bfloat16 are computed in float32 and rounded once, to 11 and to 8 digits; in sequences
    the state is rounded in each step.
    """
    name = np.dtype(dtype).name
    if op in SEQUENCES:
        return {"float32": 4e-6, "float16": 2e-3, "bfloat16": 1.6e-2}[name]
    return {"float32": 1e-6 if op in GRADIENTS else 2e-6, "float16": 1e-3, "bfloat16": 8e-3}[name]


class Accuracy(NamedTuple):
    """How accurate one output is."""

    output: str
    error: float
    """The scaled error."""
    limit: float
    """The scaled error to accept."""

    @property
    def accurate(self) -> bool:
        """Whether the error can be accepted; NaN cannot."""
        return self.error <= self.limit

    def __str__(self) -> str:
        """The output, and what is wrong with it if anything is."""
        return f"{self.output}: scaled error {self.error:.3g} is {self._than()} {self.limit:.3g}"

    def _than(self) -> str:
        return "within" if self.accurate else "above"


def accuracy(
    op: str,
    inputs: Mapping[str, np.ndarray],
    got: Mapping[str, np.ndarray],
    most: Optional[float] = None,
    **attributes: Any,
) -> List[Accuracy]:
    """Compares what an op returned with the oracle.

    The scaled error to accept is `most`, with two exceptions for what no kernel can reach. A
    difference of nearly equal terms has a large relative error however it is computed: four times
    the effect of one rounding of each input to float is accepted, if that is more. And near zero
    a type has an absolute spacing, of which one half is accepted.

    Args:
      op: The op's name.
      inputs: The inputs that it had.
      got: The outputs that it returned.
      most: The scaled error to accept; by default `limit` of the op.
      **attributes: The attributes that it had.

    Returns:
      The accuracy of each output, in the op's order.

    Raises:
      ValueError: The outputs have other names, shapes or types than the op's.
    """
    dtype = inputs["x"].dtype
    want = expected(op, inputs, **attributes)
    if list(got) != list(want):
        raise ValueError(f"{op}: the outputs are {list(got)}, expected {list(want)}")
    wrong = {name: str(value.dtype) for name, value in got.items() if value.dtype != dtype}
    if wrong:
        raise ValueError(f"{op}: outputs are of another type than {dtype}: {wrong}")
    most = limit(op, dtype.type) if most is None else most
    spacing = float(np.nextafter(np.zeros(1, dtype), np.ones(1, dtype))[0])
    moved: Optional[Arrays] = None
    found = []
    for name in want:
        accepted = most
        if want[name].any():
            accepted += spacing / 2 / np.abs(want[name]).max()
        error = scaled_error(got[name], want[name])
        if not error <= accepted:
            if moved is None:
                moved = expected(op, _rounded(inputs), **attributes)
            accepted = max(accepted, 4 * scaled_error(moved[name], want[name]))
        found.append(Accuracy(name, error, float(accepted)))
    return found


def _rounded(inputs: Mapping[str, np.ndarray]) -> Arrays:
    """The inputs, each moved by one rounding of float up or down."""
    random = np.random.RandomState(3)
    return {
        name: value
        if value.dtype.kind == "i"
        else value.astype(np.float64) * (1 + 2.0**-24 * random.choice([-1, 1], value.shape))
        for name, value in inputs.items()
    }
