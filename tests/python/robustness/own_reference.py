"""The ops of the graph passes in float64 NumPy, and what is wrong with a malformed call of them.

Each function takes an op's inputs and attributes by name, and returns its outputs by name.
"""

import functools

import numpy as np

from blockcell_tools.reference import oracle


class Malformed(ValueError):
    """The call is not what the op takes."""


def expect(condition, text):
    """Raises `Malformed` with a text unless a condition holds."""
    if not condition:
        raise Malformed(text)


def shape_of(name, value, dims):
    """Checks a shape; None stands for any size."""
    got = np.shape(value)
    fits = len(got) == len(dims) and all(d in (None, n) for d, n in zip(dims, got))
    expect(fits, f"{name} has the shape {got}, not {dims}")
    return got


def _double(values):
    return [np.asarray(value, np.float64) for value in values]


def _broadcast(*shapes):
    try:
        return np.broadcast(*(np.empty(shape, bool) for shape in shapes)).shape
    except ValueError:
        raise Malformed(f"shapes do not broadcast: {shapes}") from None


def _broadcasts_to(name, value, shape):
    expect(_broadcast(np.shape(value), shape) == tuple(shape), f"{name} is not like {shape}")


def mat_mul_add_n(a, b, addends):
    """`BlockcellMatMulAddN`."""
    parts = len(a) // len(b) if b else 0
    sums = []
    widths = [np.shape(one)[1:] for one in a[:parts]]
    n = None
    for i, right in enumerate(b):
        k, n = shape_of("b", right, (None, n))
        for p in range(parts):
            expect(len(widths[p]) == 1, "a is no matrix")
            shape_of("a", a[i * parts + p], (k, widths[p][0]))
        left = np.concatenate(_double(a[i * parts : (i + 1) * parts]), axis=1)
        sums.append(left.T @ np.asarray(right, np.float64))
    sums += _double(addends)
    for one in sums:
        expect(one.ndim == 2, "an addend is no matrix")
        shape_of("addends", one, sums[0].shape)
    return {"sum": sum(sums)}


def mat_mul_slice(a, b, num_parts, begins, sizes, rows):
    """`BlockcellMatMulSlice`."""
    k, n = shape_of("a", a, (None, None))
    m, _ = shape_of("b", b, (None, n))
    expect(len(begins) == len(sizes) == num_parts, "begins and sizes have other lengths than parts")
    expect(rows == -1 or 0 <= rows <= k, "rows are outside")
    product = np.asarray(a, np.float64) @ np.asarray(b, np.float64).T
    found = {}
    for p, (begin, size) in enumerate(zip(begins, sizes)):
        end = m if size == -1 else begin + size
        expect(0 <= begin <= end <= m and size >= -1, "columns are outside")
        found[f"parts{p}"] = product[: k if rows == -1 else rows, begin:end]
    return found


def bias_add_grad_add_n(out_backprop, addends):
    """`BlockcellBiasAddGradAddN`."""
    n, sums = None, []
    for one in out_backprop:
        n = shape_of("out_backprop", one, (None, n))[1]
        sums.append(np.asarray(one, np.float64).sum(0))
    for one in addends:
        (n,) = shape_of("addends", one, (n,))
        sums.append(np.asarray(one, np.float64))
    return {"sum": sum(sums)}


def _of_one_product(x, h_prev, w, w_h, broadcasts_rows, more=()):
    """x, h_prev and w as where w has the weights of h_prev, too, with the rows of all tensors."""
    if not w_h:
        return x, h_prev, w
    expect(np.ndim(x) >= 2 and np.ndim(h_prev) == 2, "x or h_prev has another rank")
    _, columns = shape_of("w", w, (x.shape[-1], None))
    shape_of("w_h", w_h[0], (h_prev.shape[1], columns))
    if broadcasts_rows:
        all_rows = {np.shape(one)[-2] for one in (x, h_prev, *more) if np.ndim(one) >= 2}
        expect(len(all_rows - {1}) < 2, "rows do not broadcast")
        rows = (all_rows - {1} or {1}).pop()
        x, h_prev = (
            np.broadcast_to(one, (*one.shape[:-2], rows, one.shape[-1])) for one in (x, h_prev)
        )
    return x, h_prev, np.concatenate([w, w_h[0]])


def _lstm_weights(x, h_prev, w, b, peepholes):
    batch, width = shape_of("x", x, (None, None))
    _, output = shape_of("h_prev", h_prev, (batch, None))
    _, columns = shape_of("w", w, (width + output, None))
    expect(columns % 4 == 0, "w has no four gates")
    shape_of("b", b, (columns,))
    for weights in peepholes:
        shape_of("peepholes", weights, (columns // 4,))
    return batch, columns // 4


ICFO = (0, 1, 2, 3)


def _in_icfo(gate_order, *tensors):
    """Weights of gates in another order, in that of `LSTMBlockCell`."""
    expect(sorted(gate_order) == [0, 1, 2, 3], "gate_order has not each gate once")

    def moved(tensor):
        parts = np.split(tensor, 4, axis=-1)
        return np.concatenate([parts[place] for place in gate_order], axis=-1)

    return [moved(tensor) for tensor in tensors]


def lstm_cell(
    x,
    h_prev,
    w,
    b,
    cs_prev,
    peepholes,
    w_h,
    forget_bias=1.0,
    cell_clip=-1.0,
    gate_order=ICFO,
    broadcasts_rows=False,
):
    """`BlockcellLSTMCell`."""
    x, h_prev, w = _of_one_product(x, h_prev, w, w_h, broadcasts_rows)
    batch, cell = _lstm_weights(x, h_prev, w, b, peepholes)
    _expect_peepholes(peepholes, cs_prev)
    state = cs_prev[0] if cs_prev else np.zeros((batch, cell), x.dtype)
    _broadcast((batch, cell), np.shape(state))
    w, b = _in_icfo(gate_order, w, b)
    wci, wcf, wco = [np.zeros(cell, x.dtype)] * (3 - len(peepholes)) + list(peepholes)
    attributes = dict(forget_bias=forget_bias, cell_clip=cell_clip, use_peephole=bool(peepholes))
    return oracle.lstm_block_cell(x, state, h_prev, w, wci, wcf, wco, b, **attributes)


def _expect_peepholes(peepholes, cs_prev):
    fits = len(peepholes) in (0, 3) or (len(peepholes) == 1 and not cs_prev)
    expect(fits, "so many peepholes do not go with cs_prev")


def _sum_to(value, shape):
    """The sum over what was broadcast."""
    value = np.asarray(value)
    value = value.sum(axis=tuple(range(value.ndim - len(shape))))
    for axis, size in enumerate(shape):
        if value.shape[axis] != size:
            value = value.sum(axis=axis, keepdims=True)
    return value


def lstm_cell_grad(
    i,
    f,
    o,
    ci,
    co,
    cs_prev,
    cs_grad,
    h_grad,
    peepholes,
    cs,
    num_through_peepholes,
    sums_to_gates=False,
    sums_to_cs_prev=False,
    sums_to_product=False,
    cell_clip=-1.0,
    gate_order=ICFO,
):
    """`BlockcellLSTMCellGrad`. `num_through_peepholes` counts what peepholes add to the outputs."""
    _expect_peepholes(peepholes, cs_prev)
    expect(
        (2 if len(peepholes) == 3 else 0) == num_through_peepholes,
        "outputs do not go with the peepholes",
    )
    gate = shape_of("ci", ci, (None, None))
    may_be_larger = sums_to_gates and cs_prev
    state = _broadcast(gate, np.shape(cs_prev[0])) if may_be_larger else gate
    for name, value in (("i", i), ("f", f), ("o", o)):
        shape_of(name, value, state if peepholes else gate)
    shape_of("co", co, state)
    for name, values in (("cs_prev", cs_prev), ("cs_grad", cs_grad), ("h_grad", h_grad)):
        for value in values:
            _broadcasts_to(name, value, state)
    for name, values, shape in (("peepholes", peepholes, gate[1:]), ("cs", cs, state)):
        for value in values:
            shape_of(name, value, shape)
    dtype = i.dtype
    i, f, o, ci, co = _double((i, f, o, ci, co))
    zeros = np.zeros(state)
    before = np.asarray(cs_prev[0], np.float64) if cs_prev else zeros
    wci, wcf, wco = [np.zeros(gate[1])] * (3 - len(peepholes)) + list(_double(peepholes))
    dh, dcs = sum(_double(h_grad), zeros), sum(_double(cs_grad), zeros)
    do = dh * co * o * (1 - o)
    dcs = dcs + dh * o * (1 - co * co)
    if peepholes:
        dcs = dcs + do * wco
    if cell_clip > 0:
        # What was clipped is of the element type. A NaN gets no gradient, as in TensorFlow.
        unclipped, bound = (np.asarray(v, dtype) for v in (i * ci + f * before, cell_clip))
        dcs = np.where(np.abs(unclipped) <= bound, dcs, 0)
    di = dcs * ci * i * (1 - i)
    dci = dcs * i * (1 - ci * ci)
    df = dcs * before * f * (1 - f)
    expect(sorted(gate_order) == [0, 1, 2, 3], "gate_order has not each gate once")
    slopes = sorted(zip(gate_order, (di, dci, df, do)), key=lambda one: one[0])
    slopes = [_sum_to(slope, gate) for _, slope in slopes]
    found = {"cs_prev_grad": dcs * f, "dicfo": np.concatenate(slopes, axis=1)}
    if num_through_peepholes:
        product = np.broadcast(before, wci).shape if sums_to_product else state
        shape = before.shape if sums_to_cs_prev else product
        found.update(through_i=_sum_to(di * wci, shape), through_f=_sum_to(df * wcf, shape))
        found.update(wci=_sum_to(di * before, gate[1:]), wcf=_sum_to(df * before, gate[1:]))
    if peepholes:
        found.update(wco=_sum_to(do * (_double(cs)[0] if cs else zeros), gate[1:]))
    return found


def gru_cell(
    x,
    h_prev,
    w_ru,
    w_c,
    b_ru,
    b_c,
    w_ru_h=(),
    w_c_h=(),
    broadcasts_rows=False,
    update_first=False,
    u_weighs_c=False,
):
    """`BlockcellGRUCell`."""
    _, _, w_c = _of_one_product(x, h_prev, w_c, w_c_h, broadcasts_rows)
    x, h_prev, w_ru = _of_one_product(x, h_prev, w_ru, w_ru_h, broadcasts_rows)
    batch, width = shape_of("x", x, (None, None))
    _, cell = shape_of("h_prev", h_prev, (batch, None))
    shape_of("w_ru", w_ru, (width + cell, 2 * cell))
    shape_of("w_c", w_c, (width + cell, cell))
    shape_of("b_ru", b_ru, (2 * cell,))
    shape_of("b_c", b_c, (cell,))
    return _gru_step(x, h_prev, (w_ru, w_c, b_ru, b_c), update_first, u_weighs_c)


def _gru_step(x, h_prev, weights, update_first, u_weighs_c):
    w_ru, w_c, b_ru, b_c = weights
    if update_first:
        w_ru, b_ru = (np.roll(one, b_c.shape[0], axis=-1) for one in (w_ru, b_ru))
    found = oracle.gru_block_cell(x, h_prev, w_ru, w_c, b_ru, b_c)
    if u_weighs_c:
        u = found["u"]
        found["h"] = (1 - u) * np.asarray(h_prev, np.float64) + u * found["c"]
    return found


def gru_cell_grad_c(u, h_prev, c, d_h, u_weighs_c=False):
    """`BlockcellGRUCellGradC`."""
    shape = shape_of("u", u, (None, None))
    shape_of("h_prev", h_prev, shape)
    shape_of("c", c, shape)
    _broadcasts_to("d_h", d_h, shape)
    u, h_prev, c, d_h = _double((u, h_prev, c, d_h))
    of_h, sign = (1 - u, -1) if u_weighs_c else (u, 1)
    return {
        "d_c_bar": d_h * (1 - of_h) * (1 - c * c),
        "d_u_bar": sign * d_h * (h_prev - c) * u * (1 - u),
        "d_h_u": d_h * of_h,
    }


def gru_cell_grad_ru(r, h_prev, d_u_bar, d_hr, update_first=False):
    """`BlockcellGRUCellGradRU`."""
    shape = shape_of("r", r, (None, None))
    shape_of("h_prev", h_prev, shape)
    shape_of("d_u_bar", d_u_bar, shape)
    _broadcasts_to("d_hr", d_hr, shape)
    r, h_prev, d_u_bar, d_hr = _double((r, h_prev, d_u_bar, d_hr))
    d_r_bar = d_hr * h_prev * r * (1 - r)
    both = [d_u_bar, d_r_bar] if update_first else [d_r_bar, d_u_bar]
    return {"d_r_bar_u_bar": np.concatenate(both, axis=1), "d_hr_r": d_hr * r}


# Loops over a sequence.


def _steps(time, rounds, x):
    """How many steps the loop makes."""
    for name, value in [("time", time), *(("rounds", one) for one in rounds)]:
        shape_of(name, value, ())
    return max(0, min(int(one) for one in rounds))


def known_sizes(name, sizes):
    """What an attribute tells of a step: no sizes, or two, each None where it is not known."""
    expect(len(sizes) in (0, 2), f"{name} has neither no numbers nor two")
    return [None if size < 0 else size for size in sizes]


def _without_steps(time, x, states, x_sizes, h_sizes, needs_h):
    """The zeros of a loop that makes no step; None of the other tensors is looked at."""
    if x_sizes:
        shape_of("x", x, (None, *x_sizes))
    steps = np.shape(x)[0] if np.ndim(x) else 0
    expect(steps == int(time), "time is another than that of x")
    known = bool(h_sizes) and None not in h_sizes
    expect(known or not needs_h, "h_sizes is not known")
    h = [steps, *(size or 0 for size in h_sizes)] if needs_h else [steps, 0, 0]
    return {"h": np.zeros(h), **dict(zip(("h_last", "cs_last"), states))}


def _or_of_lists(layer):
    """A loop whose arrays may be lists: then h has `time` steps, and x at least those made."""

    @functools.wraps(layer)
    def call(time, rounds, x, lists=False, **others):
        if not lists:
            return layer(time=time, rounds=rounds, x=x, **others)
        steps = _steps(time, rounds, x)
        shape_of("x", x, (None, None, None))
        expect(int(time) >= 0, "a list has a negative size")
        expect(steps <= min(int(time), len(x)), "there are more rounds than steps")
        cut = x[:steps] if steps else x
        made = layer(time=np.int32(len(cut)), rounds=rounds, x=cut, **others)
        h = np.zeros((int(time), *made["h"].shape[1:]))
        h[:steps] = made["h"][:steps]
        return dict(made, h=h)

    return call


def _check_loop(time, rounds, lengths, x, sizes, shape):
    """The number of steps of each row."""
    steps, batch, cell = shape
    x_sizes, h_sizes = sizes
    if x_sizes:
        shape_of("x", x, (None, *x_sizes))
    if h_sizes:
        shape_of("h", np.empty((batch, cell)), h_sizes)
    expect(int(time) == steps, "time is another than that of x")
    expect(rounds <= steps, "there are more rounds than steps")
    of_rows = np.full(batch, rounds)
    for one in lengths:
        expect(np.shape(one) in ((), (batch,)), "sequence_length is not that of the rows")
        of_rows = np.clip(np.broadcast_to(one, (batch,)), 0, rounds)
    return of_rows


def _looped(x, states, of_rows, step):
    """Steps of the rows that take part: h of all steps, and the last states."""
    states = [np.array(state, np.float64) for state in states]
    last = [state.copy() for state in states]
    h = np.zeros((len(x), *states[0].shape))
    for t in range(int(of_rows.max()) if of_rows.size else 0):
        rows = of_rows > t
        made = step(x[t][rows], *(state[rows] for state in states))
        for state, end, value in zip(states, last, made):
            end[rows] = value
            state[rows] = value.astype(x.dtype)
        h[t][rows] = made[0]
    return h, last


def _with_x(h, x, of_rows, adds_x):
    """Outputs with x added in the steps that each row takes part in."""
    takes = np.arange(len(h))[:, None, None] < np.reshape(of_rows, (1, -1, 1))
    return h + np.where(takes, x[: len(h)], 0) if adds_x else h


@_or_of_lists
def lstm_layer(
    time,
    rounds,
    sequence_length,
    x,
    h_prev,
    cs_prev,
    w,
    b,
    peepholes,
    w_h,
    projection,
    forget_bias=1.0,
    cell_clip=-1.0,
    x_sizes=(),
    h_sizes=(),
    needs_h=True,
    broadcasts=True,
    gate_order=ICFO,
    broadcasts_rows=False,
    proj_clip=-1.0,
    adds_x=False,
):
    """`BlockcellLSTMLayer`."""
    expect(sorted(gate_order) == [0, 1, 2, 3], "gate_order has not each gate once")
    x_sizes, h_sizes = known_sizes("x_sizes", x_sizes), known_sizes("h_sizes", h_sizes)
    steps = _steps(time, rounds, x)
    if steps == 0:
        return _without_steps(time, x, (h_prev, cs_prev), x_sizes, h_sizes, needs_h)
    whole = h_prev if sequence_length else None
    x, h_prev, w = _of_one_product(x, h_prev, w, w_h, broadcasts_rows, [cs_prev])
    shape = shape_of("x", x, (None, None, None))
    expect(whole is None or len(whole) == shape[1], "rows end, but not those of the state")
    batch, cell = _lstm_weights(np.empty(shape[1:]), h_prev, w, b, peepholes)
    output = cell
    if projection:
        _, output = shape_of("projection", projection[0], (cell, None))
        expect(output <= cell, "a projection is wider than the state")
    shape_of("h_prev", h_prev, (batch, output))
    expect(not adds_x or shape[2] == output, "x is not as wide as the outputs")
    if sequence_length or not broadcasts:
        shape_of("cs_prev", cs_prev, (batch, cell))
    _broadcasts_to("cs_prev", cs_prev, (batch, cell))
    of_rows = _check_loop(
        time, steps, sequence_length, x, (x_sizes, h_sizes), (shape[0], batch, output)
    )
    w, b = _in_icfo(gate_order, w, b)
    wci, wcf, wco = peepholes or [np.zeros(cell, x.dtype)] * 3
    attributes = dict(forget_bias=forget_bias, cell_clip=cell_clip, use_peephole=bool(peepholes))

    def step(inputs, h, cs):
        made = oracle.lstm_block_cell(inputs, cs, h, w, wci, wcf, wco, b, **attributes)
        h = made["h"]
        if projection:
            h = h @ np.asarray(projection[0], np.float64)
            h = np.clip(h, -proj_clip, proj_clip) if proj_clip > 0 else h
        return h, made["cs"]

    h, (h_last, cs_last) = _looped(
        x, (h_prev, np.broadcast_to(cs_prev, (batch, cell))), of_rows, step
    )
    return {"h": _with_x(h, x, of_rows, adds_x), "h_last": h_last, "cs_last": cs_last}


@_or_of_lists
def gru_layer(
    time,
    rounds,
    sequence_length,
    x,
    h_prev,
    w_ru,
    w_c,
    b_ru,
    b_c,
    w_ru_h=(),
    w_c_h=(),
    x_sizes=(),
    h_sizes=(),
    needs_h=True,
    adds_x=False,
    broadcasts_rows=False,
    update_first=False,
    u_weighs_c=False,
):
    """`BlockcellGRULayer`."""
    x_sizes, h_sizes = known_sizes("x_sizes", x_sizes), known_sizes("h_sizes", h_sizes)
    steps = _steps(time, rounds, x)
    if steps == 0:
        return _without_steps(time, x, (h_prev,), x_sizes, h_sizes, needs_h)
    whole = h_prev if sequence_length else None
    _, _, w_c = _of_one_product(x, h_prev, w_c, w_c_h, broadcasts_rows)
    x, h_prev, w_ru = _of_one_product(x, h_prev, w_ru, w_ru_h, broadcasts_rows)
    shape = shape_of("x", x, (None, None, None))
    rows = np.shape(whole)[:1]
    expect(whole is None or rows == shape[1:2], "rows end, but not those of the state")
    batch, cell = shape_of("h_prev", h_prev, (shape[1], None))
    expect(not adds_x or shape[2] == cell, "x is not as wide as the outputs")
    rows = shape[2] + cell
    shape_of("w_ru", w_ru, (rows, 2 * cell))
    shape_of("w_c", w_c, (rows, cell))
    shape_of("b_ru", b_ru, (2 * cell,))
    shape_of("b_c", b_c, (cell,))
    of_rows = _check_loop(
        time, steps, sequence_length, x, (x_sizes, h_sizes), (shape[0], batch, cell)
    )

    def step(inputs, h):
        weights = (w_ru, w_c, b_ru, b_c)
        return (_gru_step(inputs, h, weights, update_first, u_weighs_c)["h"],)

    h, (h_last,) = _looped(x, (h_prev,), of_rows, step)
    return {"h": _with_x(h, x, of_rows, adds_x), "h_last": h_last}


REFERENCES = {
    "BlockcellMatMulAddN": mat_mul_add_n,
    "BlockcellMatMulSlice": mat_mul_slice,
    "BlockcellBiasAddGradAddN": bias_add_grad_add_n,
    "BlockcellLSTMCell": lstm_cell,
    "BlockcellLSTMCellGrad": lstm_cell_grad,
    "BlockcellGRUCell": gru_cell,
    "BlockcellGRUCellGradC": gru_cell_grad_c,
    "BlockcellGRUCellGradRU": gru_cell_grad_ru,
    "BlockcellLSTMLayer": lstm_layer,
    "BlockcellGRULayer": gru_layer,
}
"""The function of each op."""
