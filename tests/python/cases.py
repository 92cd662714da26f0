"""Random but reproducible inputs for the ops, and how to measure an error."""

import numpy as np

from op_table import LENGTHS, OPS, PEEPHOLES, SEQUENCES

__all__ = ["PEEPHOLES"]  # For those who import it from here.

TIME = 3  # Of a sequence, unless told otherwise.


def shapes(op, batch, input_size, cell_size, time=TIME):
    """The shape of every input, in numbers."""
    return in_numbers(OPS[op].inputs, batch, input_size, cell_size, time)


def in_numbers(tensors, batch, input_size, cell_size, time=TIME):
    """Symbolic shapes in numbers."""
    sizes = dict(batch=batch, input_size=input_size, cell_size=cell_size, time=time)
    return {name: [eval(dim, {}, sizes) for dim in dims] for name, dims in tensors.items()}


def _length(shape, time, length, random):
    """A value for seq_len_max, or for sequence_length: by default all steps, or random ones."""
    if length is None:
        length = random.randint(0, time + 1, shape) if shape else time
    return np.full(shape, length, np.int64)


def forward_inputs(
    op, batch, input_size, cell_size, time=TIME, dtype=np.float32, seed=0, length=None
):
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
        take part in the LSTMs, and a random number for each row in the GRUs.

    Returns:
      A dictionary of arrays.
    """
    op = OPS[op].forward or op
    sizes = (batch, input_size, cell_size) + ((time,) if op in SEQUENCES else ())
    random = np.random.RandomState((seed,) + sizes)
    rows = max(1, input_size + cell_size)
    inputs = {}
    for name, shape in shapes(op, *sizes).items():
        if name in LENGTHS:
            inputs[name] = _length(shape, time, length, random)
            continue
        value = random.standard_normal(shape)
        if name.startswith("w") and len(shape) == 2:
            value /= np.sqrt(rows)
        inputs[name] = value.astype(dtype)
    return inputs


def forward(op, inputs, **attributes):
    """The outputs of an op, or of the op whose gradient it is, in float64, without clipping."""
    op = OPS[op].forward or op
    if OPS[op].switch == "use_peephole":
        attributes.setdefault("cell_clip", 0.0)
    return OPS[op].oracle(**inputs, **attributes)


def inputs_of(
    op, batch, input_size, cell_size, time=TIME, length=None, dtype=np.float32, seed=0, **attributes
):
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
      **attributes: The boolean attributes of the op.

    Returns:
      A dictionary of arrays.
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


def expected(op, inputs, **attributes):
    """What an op has to return, from the oracle."""
    return OPS[op].oracle(**inputs, **attributes)


def _rounded(inputs):
    """The inputs, each moved by one rounding of float up or down."""
    random = np.random.RandomState(3)
    return {
        name: value
        if value.dtype.kind == "i"
        else value.astype(np.float64) * (1 + 2.0**-24 * random.choice([-1, 1], value.shape))
        for name, value in inputs.items()
    }


def assert_accurate(op, inputs, got, limit, what="", **attributes):
    """Compares what an op returned with the oracle, and checks its types and names.

    The scaled error to accept is `limit`, but for what cannot be had: a difference of nearly equal
    terms has a large relative error however it is computed. So four times the effect of one
    rounding of each input to float is accepted, if that is more. Near zero, half has an absolute
    spacing; one half of it is accepted.
    """
    dtype = inputs["x"].dtype
    wrong = {name: value.dtype for name, value in got.items() if value.dtype != dtype}
    assert not wrong, f"{what} outputs of another type: {wrong}"
    want = expected(op, inputs, **attributes)
    assert list(got) == list(want), f"{what} outputs are {list(got)}"
    spacing = float(np.nextafter(np.zeros(1, dtype), np.ones(1, dtype))[0])
    moved = None
    for name in want:
        most = limit
        if want[name].any():
            most += spacing / 2 / np.abs(want[name]).max()
        error = scaled_error(got[name], want[name])
        if not error <= most:
            moved = moved or expected(op, _rounded(inputs), **attributes)
            most = max(most, 4 * scaled_error(moved[name], want[name]))
        assert error <= most, f"{what} {name}: scaled error {error:.3g} is above {most:.3g}"


def scaled_error(got, want):
    """The error max |got - want| / max |want|, where a `want` of zeros counts as 1."""
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    assert got.shape == want.shape, f"shape {got.shape}, expected {want.shape}"
    if want.size == 0:
        return 0.0
    scale = np.abs(want).max()
    return np.abs(got - want).max() / (scale if scale > 0 else 1.0)


def assert_close(got, want, limit, what=""):
    """Compares dictionaries of outputs by `scaled_error`.

    Args:
      got: The outputs.
      want: What they have to be.
      limit: The error to accept, one number or a dictionary with one for each output.
      what: Words to begin a message with.
    """
    assert set(got) == set(want)
    for name in want:
        most = limit[name] if isinstance(limit, dict) else limit
        error = scaled_error(got[name], want[name])
        assert error <= most, f"{what} {name}: scaled error {error:.3g} is above {most:.3g}"
