"""Shapes of what a layer is called with: its inputs, its initial states and its mask.

Keras's loop takes tensors that broadcast: one row for a batch of many, in any of the three. In a
function it also takes a mask of more steps than the inputs have. The ops take the same rows and
steps in all. Where shapes are known before a layer runs, as they always are outside of functions,
unusual ones get Keras's own path. Where they are not, rows and steps are made equal as Keras's loop
would have it, and what it refuses is an error.
"""

from typing import Any, List, NamedTuple, Optional

import tensorflow as tf

from blockcell.keras import kinds

_STATES = ("h", "c")  # A GRU has the first one.


class Given(NamedTuple):
    """What a layer is called with."""

    x: Any
    """The inputs, `[batch, time, input_size]` (time-major: `[time, batch, input_size]`)."""
    states: List[Any]
    """The states before the first step, `[batch, units]` each."""
    mask: Any
    """Which steps count, `[batch, time]` (time-major: `[time, batch]`), or None."""
    rows_are_equal: bool = False
    """Whether the states are known to have a row for each of the inputs, if not how many."""


class _WithRows(NamedTuple):
    """One of the tensors."""

    name: str
    tensor: Any
    axis: int
    """That of the rows."""

    def known_rows(self) -> Optional[int]:
        return tf.compat.dimension_value(self.tensor.shape[self.axis])


def unusual(layer: Any, given: Given) -> Optional[str]:
    """What in shapes and types the ops do not take; None if they take all.

    Args:
      layer: A layer that is an LSTM, a GRU or an RNN around a cell of these.
      given: What it is called with.

    Returns:
      A clause that can follow "because".
    """
    x, states, mask, _ = given
    count = 2 if kinds.of(layer) == kinds.LSTM else 1
    if len(states) != count:
        return f"it has {count} states, and is called with {len(states)}"
    if x.shape.rank != 3:
        return f"its inputs have rank {x.shape.rank}, not 3"
    input_size, features = layer.cell.kernel.shape[0], x.shape[2]
    if features not in (None, input_size):
        return f"its inputs have {features} features, and its kernel is for {input_size}"
    for name, state in zip(_STATES, states):
        if state.dtype != x.dtype:
            return f"its initial state {name} is {state.dtype.name}, and its inputs {x.dtype.name}"
        if state.shape.rank != 2 or state.shape[1] != layer.cell.units:
            return f"its initial state {name} has shape {state.shape}, not [batch, units]"
    return _of_mask(layer, x, mask) or _of_rows(layer, given)


def _of_mask(layer: Any, x: Any, mask: Any) -> Optional[str]:
    if mask is None:
        return None
    if mask.shape.rank != 2:
        return f"its mask has rank {mask.shape.rank}, not 2"
    if mask.dtype != tf.bool and _is_of_keras2(layer):  # Its functions refuse some of them.
        return f"its mask is {mask.dtype.name}, not bool"
    axis = _time_axis(layer)
    steps, masked = x.shape[axis], mask.shape[axis]
    if None not in (steps, masked) and steps != masked:
        return f"its mask has {masked} steps, and its inputs have {steps}"
    return None


def _of_rows(layer: Any, given: Given) -> Optional[str]:
    parts = _with_rows(layer, given)
    found = {part.known_rows() for part in parts}
    known = found - {None}
    if len(known) <= 1 and not (None in found and 1 in known):
        return None
    # One row and an unknown number. Keras refuses some of these without knowing the number: the
    # shapes of its loop's variables have to stay. Keras 2 lets that of a state stay.
    states = {part.known_rows() for part in parts[1 : 1 + len(given.states)]}
    if len(known) == 1 and states == {1} and _is_of_keras2(layer):
        return None
    words = (f"{part.name} {part.known_rows() or 'an unknown number'}" for part in parts)
    return f"the numbers of rows are not known to be equal ({', '.join(words)})"


def made_equal(layer: Any, given: Given) -> Given:
    """The same with equal rows in all, and in the mask the steps of the inputs.

    Args:
      layer: The layer.
      given: What it is called with, nothing of which is `unusual`.

    Returns:
      The same, which fails with an `InvalidArgumentError` where Keras's loop would fail.
    """
    if given.mask is not None:
        given = given._replace(mask=_mask_of_steps(layer, given.x, given.mask))
    if given.rows_are_equal and given.mask is None:
        return given
    parts = _with_rows(layer, given)
    known = {part.known_rows() for part in parts}
    if None not in known:
        return given
    rows = next((number for number in known if number is not None), None)
    if rows is None:
        sizes = [tf.shape(part.tensor)[part.axis] for part in parts]
        rows = sizes[0]
        for size in sizes[1:]:
            rows = tf.where(tf.equal(rows, 1), size, rows)
    x, *others = [_with_many_rows(layer, part, rows) for part in parts]
    states = others[: len(given.states)]
    return given._replace(x=x, states=states, mask=None if given.mask is None else others[-1])


def _with_many_rows(layer: Any, part: _WithRows, rows: Any) -> Any:
    """A tensor of that many rows, from one of as many or of one.

    Args:
      layer: The layer.
      part: The tensor.
      rows: A number if it is known, else a tensor.
    """
    if part.known_rows() is not None:
        return part.tensor
    shape = tf.shape(part.tensor)
    sizes = tf.unstack(shape, num=part.tensor.shape.rank)
    own, sizes[part.axis] = sizes[part.axis], rows
    wanted = tf.stack(sizes)
    fits = tf.logical_or(tf.equal(own, rows), tf.equal(own, 1))
    with tf.control_dependencies([_checked(layer, part.name, fits, wanted, shape)]):
        wanted = tf.identity(wanted)  # What gradients read, too.
    equal = tf.broadcast_to(part.tensor, wanted)
    known = part.tensor.shape.as_list()
    known[part.axis] = rows if isinstance(rows, int) else None
    equal.set_shape(known)
    return equal


def _mask_of_steps(layer: Any, x: Any, mask: Any) -> Any:
    """The mask of the steps that are taken. Keras turns it round before it looks at its length."""
    axis = _time_axis(layer)
    if x.shape[axis] is not None and x.shape[axis] == mask.shape[axis]:
        return mask
    steps, masked = tf.shape(x)[axis], tf.shape(mask)[axis]
    fits = tf.greater_equal(masked, steps)
    check = _checked(layer, "mask", fits, tf.shape(x)[:2], tf.shape(mask))
    with tf.control_dependencies([check]):
        begin = masked - steps if layer.go_backwards else tf.zeros_like(steps)
    taken = mask[begin : begin + steps] if axis == 0 else mask[:, begin : begin + steps]
    known = mask.shape.as_list()
    known[axis] = x.shape[axis]
    taken.set_shape(known)
    return taken


def _checked(layer: Any, name: str, fits: Any, wanted: Any, shape: Any) -> Any:
    """An op that fails where a tensor does not fit."""
    words = [f"{layer.name}: its {name} must have shape", wanted, "got", shape]
    return tf.raw_ops.Assert(condition=fits, data=words, summarize=3)


def have_rows_of_inputs(layer: Any, x: Any, states: List[Any]) -> bool:
    """Whether states in a graph are made with a row for each of the inputs, as Keras's zeros."""
    return all(_is_made_for(layer, x, state) for state in states)


def _is_made_for(layer: Any, x: Any, state: Any) -> bool:
    """Whether a tensor is a `Fill` of a shape that begins with the size of x's axis of rows."""
    tensor, rows = state, None
    for kind in ("Fill", "Pack", "StridedSlice", "Shape"):
        op = getattr(tensor, "op", None)  # A tensor from outside of a function has none.
        if op is None or op.type != kind:
            return False
        if kind == "StridedSlice":
            rows = tf.get_static_value(op.inputs[1])
        tensor = op.inputs[0]
    return tensor is x and rows is not None and list(rows) == [1 - _time_axis(layer)]


def _with_rows(layer: Any, given: Given) -> List[_WithRows]:
    """The tensors, the inputs first."""
    batch = 1 - _time_axis(layer)
    parts = [_WithRows("inputs", given.x, batch)]
    for name, state in zip(_STATES, given.states):
        parts.append(_WithRows(f"initial state {name}", state, 0))
    if given.mask is not None:
        parts.append(_WithRows("mask", given.mask, batch))
    return parts


def _is_of_keras2(layer: Any) -> bool:
    return not hasattr(layer, "inner_loop")


def _time_axis(layer: Any) -> int:
    """The axis of the steps, in inputs and mask."""
    return 0 if getattr(layer, "time_major", False) else 1
