"""The ops on loops of Keras in float64 NumPy, and what is wrong with a malformed call of them.

Each function takes an op's inputs and attributes by name, and returns its outputs by name.
"""

import numpy as np

from robustness.own_reference import expect, known_sizes, shape_of


def lstm(size, rounds, mask, before, x, h_prev, cs_prev, w_x, w_h, b, **attributes):
    """`BlockcellKerasLSTM`."""

    def weights(width, cell):
        shape_of("w_x", w_x, (width, 4 * cell))
        shape_of("w_h", w_h, (cell, 4 * cell))
        shape_of("b", b, (4 * cell,))

    def step(inputs, h, cs):
        bars = _product(inputs, w_x) + _product(h, w_h) + np.asarray(b, np.float64)
        i, f, ci, o = np.split(bars, 4, axis=1)
        cs = _sigmoid(f) * cs + _sigmoid(i) * np.tanh(ci)
        return _sigmoid(o) * np.tanh(cs), cs

    loop = (size, rounds, mask, before, x)
    return _loop(*loop, {"h_prev": h_prev, "cs_prev": cs_prev}, weights, step, **attributes)


def gru(size, rounds, mask, before, x, h_prev, w_x, w_h, b_x, b_h, reset_after=True, **attributes):
    """`BlockcellKerasGRU`."""

    def weights(width, cell):
        shape_of("w_x", w_x, (width, 3 * cell))
        shape_of("w_h", w_h, (cell, 3 * cell))
        shape_of("b_x", b_x, (3 * cell,))
        shape_of("b_h", b_h, (3 * cell,))

    def step(inputs, h):
        of_x = np.split(_product(inputs, w_x) + np.asarray(b_x, np.float64), 3, axis=1)
        of_h = np.split(_product(h, w_h) + np.asarray(b_h, np.float64), 3, axis=1)
        z, r = _sigmoid(of_x[0] + of_h[0]), _sigmoid(of_x[1] + of_h[1])
        of_reset = np.split(_product(r * h, w_h) + np.asarray(b_h, np.float64), 3, axis=1)
        reset = r * of_h[2] if reset_after else of_reset[2]
        return (z * h + (1 - z) * np.tanh(of_x[2] + reset),)

    return _loop(size, rounds, mask, before, x, {"h_prev": h_prev}, weights, step, **attributes)


def _product(a, b):
    return np.asarray(a, np.float64) @ np.asarray(b, np.float64)


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _loop(
    size,
    rounds,
    mask,
    before,
    x,
    states,
    weights,
    step,
    last_only=False,
    repeats=True,
    x_sizes=(),
    h_sizes=(),
    needs_h=True,
):
    """A loop of such steps: `states` by name, h first; `weights` checks the rest of the inputs."""
    elements = known_sizes("x_sizes", x_sizes), known_sizes("h_sizes", h_sizes)
    for name, value in (("size", size), *(("rounds", one) for one in rounds)):
        shape_of(name, value, ())
    size, count = int(size), max(0, min(int(one) for one in rounds))
    expect(size >= 0, "size is negative")
    expect(count <= size or (last_only and size > 0), "h has no place for all rounds")
    if count == 0:
        return _without_rounds(size, x, states, elements, needs_h)
    batch, cell = _check(mask, before, x, states, weights, elements)
    expect(count <= len(x), "x has fewer steps than there are rounds")
    expect(all(count <= len(one) for one in mask), "the mask has fewer steps")
    valid = [np.broadcast_to(one[:, :, 0], (len(one), batch)) for one in mask]
    outputs = np.broadcast_to(before[0], (batch, cell)) if mask else np.zeros((batch, cell))
    first, now = outputs, [np.broadcast_to(one, (batch, cell)) for one in states.values()]
    h, last = np.zeros((size, batch, cell)), now
    for t in range(count):
        takes_part = (valid[0][t] if mask else np.ones(batch, bool))[:, None]
        made = step(np.broadcast_to(x[t], (batch, x.shape[2])), *now)
        last = [np.where(takes_part, new, old) for new, old in zip(made, last)]
        now = [one.astype(x.dtype) for one in last]
        outputs = np.where(takes_part, made[0], outputs if repeats else first)
        h[0 if last_only else t] = outputs
    return {"h": h, **dict(zip(("h_last", "cs_last"), last))}


def _without_rounds(size, x, states, elements, needs_h):
    """Zeros, and the states as they are. None of the other tensors is looked at."""
    shape_of("x", x, (None, *(elements[0] or [None, None])))
    known = bool(elements[1]) and None not in elements[1]
    expect(known or not needs_h, "h_sizes is not known")
    h = np.zeros([size, *elements[1]] if needs_h else [size, 0, 0])
    return {"h": h, **dict(zip(("h_last", "cs_last"), states.values()))}


def _check(mask, before, x, states, weights, elements):
    """The batch, which one row may stand for, and the size of the cell."""
    _, rows, width = shape_of("x", x, (None, *(elements[0] or [None, None])))
    batches, cell = [rows], None
    for name, state in [*states.items(), *(("before", one) for one in before)]:
        rows, cell = shape_of(name, state, (None, cell))
        batches.append(rows)
    batches += [shape_of("mask", one, (None, None, 1))[1] for one in mask]
    weights(width, cell)
    larger = {batch for batch in batches if batch != 1}
    expect(len(larger) < 2, f"there are several batches: {batches}")
    batch = larger.pop() if larger else 1
    if elements[1]:
        shape_of("h", np.empty((batch, cell)), elements[1])
    return batch, cell


REFERENCES = {"BlockcellKerasLSTM": lstm, "BlockcellKerasGRU": gru}
"""The function of each op."""
