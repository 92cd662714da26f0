"""The ops in float64 NumPy, written from their equations: cells, sequences and their gradients.

Sizes: batch (B), input_size (D), cell_size (C), time (T). Names are those of `tf.raw_ops`.
`[a | b]` is concatenation along the last axis, S the logistic function. Every function converts its
inputs to float64 and returns a dictionary of outputs in the order of the op.
"""

from typing import Any, Callable, Dict, List, Tuple

import numpy as np

ArrayLike = Any
"""What `np.asarray` takes."""
Arrays = Dict[str, np.ndarray]


def logistic(z: ArrayLike) -> np.ndarray:
    """The logistic function."""
    with np.errstate(over="ignore"):
        return 1.0 / (1.0 + np.exp(-z))


_SELU = (1.0507009873554805, 1.7580993408473766)
"""The factor of what is above zero, and that of the exponential function below."""


def _elu(z: np.ndarray) -> np.ndarray:
    return np.maximum(z, 0.0) + np.expm1(np.minimum(z, 0.0))


FUNCTIONS_OF_CELLS: Dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "tanh": np.tanh,
    "sigmoid": logistic,
    "relu": lambda z: np.maximum(z, 0.0),
    "linear": lambda z: z,
    "hard_sigmoid": lambda z: np.clip(z / 6 + 0.5, 0.0, 1.0),
    "hard_sigmoid_keras2": lambda z: np.clip(z / 5 + 0.5, 0.0, 1.0),
    "softsign": lambda z: z / (1 + np.abs(z)),
    "softplus": lambda z: np.maximum(z, 0.0) + np.log1p(np.exp(-np.abs(z))),
    "elu": _elu,
    "selu": lambda z: np.where(z < 0, _SELU[1], _SELU[0]) * _elu(z),
}
"""By the names that attributes have for them."""
_SLOPES: Dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "tanh": lambda y: 1 - y * y,
    "sigmoid": lambda y: y * (1 - y),
    "relu": lambda y: np.where(y > 0, 1.0, 0.0),
    "linear": np.ones_like,
    "hard_sigmoid": lambda y: np.where((y > 0) & (y < 1), 1 / 6, 0.0),
    "hard_sigmoid_keras2": lambda y: np.where((y > 0) & (y < 1), 1 / 5, 0.0),
    "softsign": lambda y: (1 - np.abs(y)) ** 2,
    "softplus": lambda y: -np.expm1(-y),
    "elu": lambda y: 1 + np.minimum(y, 0.0),
    "selu": lambda y: np.where(y < 0, y + _SELU[1], _SELU[0]),
}
"""Their derivatives, from their values."""


def _double(*arrays: ArrayLike) -> List[np.ndarray]:
    return [np.asarray(array, dtype=np.float64) for array in arrays]


def _join(*blocks: ArrayLike) -> np.ndarray:
    return np.concatenate(blocks, axis=-1)


def _attribute(value: float, like: ArrayLike) -> float:
    """A float attribute as kernels use it: converted to the element type of `like`."""
    with np.errstate(over="ignore"):
        return float(np.asarray(value, np.asarray(like).dtype))


def gru_block_cell(
    x: ArrayLike,
    h_prev: ArrayLike,
    w_ru: ArrayLike,
    w_c: ArrayLike,
    b_ru: ArrayLike,
    b_c: ArrayLike,
) -> Arrays:
    """Forward step: r, u, c, h of shape [B, C].

    [r_bar | u_bar] = [x | h_prev] @ w_ru + b_ru ;  r = S(r_bar), u = S(u_bar)
    c = tanh([x | r*h_prev] @ w_c + b_c) ;          h = u*h_prev + (1-u)*c
    """
    x, h_prev, w_ru, w_c, b_ru, b_c = _double(x, h_prev, w_ru, w_c, b_ru, b_c)
    r, u = np.split(logistic(_join(x, h_prev) @ w_ru + b_ru), 2, axis=1)
    c = np.tanh(_join(x, r * h_prev) @ w_c + b_c)
    return {"r": r, "u": u, "c": c, "h": u * h_prev + (1 - u) * c}


def _gru_backward(
    x: ArrayLike,
    h_prev: ArrayLike,
    w_ru: ArrayLike,
    w_c: ArrayLike,
    r: ArrayLike,
    u: ArrayLike,
    c: ArrayLike,
    d_r: ArrayLike,
    d_u: ArrayLike,
    d_c: ArrayLike,
    d_h: ArrayLike,
) -> Arrays:
    """The chain rule through `gru_block_cell`, for gradients of all four outputs."""
    input_size = x.shape[1]
    d_c_bar = (d_c + d_h * (1 - u)) * (1 - c * c)
    d_u_bar = (d_u + d_h * (h_prev - c)) * u * (1 - u)
    through_c = d_c_bar @ w_c.T
    d_hr = through_c[:, input_size:]
    d_r_bar = (d_r + d_hr * h_prev) * r * (1 - r)
    d_r_bar_u_bar = _join(d_r_bar, d_u_bar)
    through_ru = d_r_bar_u_bar @ w_ru.T
    return {
        "d_x": through_ru[:, :input_size] + through_c[:, :input_size],
        "d_h_prev": through_ru[:, input_size:] + d_hr * r + d_h * u,
        "d_c_bar": d_c_bar,
        "d_r_bar_u_bar": d_r_bar_u_bar,
    }


def gru_block_cell_grad(
    x: ArrayLike,
    h_prev: ArrayLike,
    w_ru: ArrayLike,
    w_c: ArrayLike,
    b_ru: ArrayLike,
    b_c: ArrayLike,
    r: ArrayLike,
    u: ArrayLike,
    c: ArrayLike,
    d_h: ArrayLike,
) -> Arrays:
    """`GRUBlockCellGrad`: d_x [B, D], d_h_prev [B, C], d_c_bar [B, C], d_r_bar_u_bar [B, 2C]."""
    x, h_prev, w_ru, w_c, r, u, c, d_h = _double(x, h_prev, w_ru, w_c, r, u, c, d_h)
    zero = np.zeros_like(d_h)
    return _gru_backward(x, h_prev, w_ru, w_c, r, u, c, zero, zero, zero, d_h)


def lstm_block_cell(
    x: ArrayLike,
    cs_prev: ArrayLike,
    h_prev: ArrayLike,
    w: ArrayLike,
    wci: ArrayLike,
    wcf: ArrayLike,
    wco: ArrayLike,
    b: ArrayLike,
    forget_bias: float = 1.0,
    cell_clip: float = 3.0,
    use_peephole: bool = False,
) -> Arrays:
    """Forward step: i, cs, f, o, ci, co, h of shape [B, C].

    [i_bar | ci_bar | f_bar | o_bar] = [x | h_prev] @ w + b,  P = 1 with use_peephole, else 0
    i = S(i_bar + P*wci*cs_prev) ;  f = S(f_bar + forget_bias + P*wcf*cs_prev)
    ci = tanh(ci_bar) ;             cs = i*ci + f*cs_prev, clipped to +-cell_clip if that is > 0
    o = S(o_bar + P*wco*cs) ;       co = tanh(cs) ;  h = o*co

    forget_bias and cell_clip take the type of x: in half, a cell_clip of 1e-9 is 0, and cs with it.
    """
    clips = np.float32(cell_clip) > 0
    forget_bias, cell_clip = _attribute(forget_bias, x), _attribute(cell_clip, x)
    x, cs_prev, h_prev, w, wci, wcf, wco, b = _double(x, cs_prev, h_prev, w, wci, wcf, wco, b)
    i_bar, ci_bar, f_bar, o_bar = np.split(_join(x, h_prev) @ w + b, 4, axis=1)
    f_bar = f_bar + forget_bias
    if use_peephole:
        i_bar = i_bar + wci * cs_prev
        f_bar = f_bar + wcf * cs_prev
    i, f, ci = logistic(i_bar), logistic(f_bar), np.tanh(ci_bar)
    cs = i * ci + f * cs_prev
    if clips:
        cs = np.clip(cs, -cell_clip, cell_clip)
    o = logistic(o_bar + wco * cs if use_peephole else o_bar)
    co = np.tanh(cs)
    return {"i": i, "cs": cs, "f": f, "o": o, "ci": ci, "co": co, "h": o * co}


def lstm_block_cell_grad(
    x: ArrayLike,
    cs_prev: ArrayLike,
    h_prev: ArrayLike,
    w: ArrayLike,
    wci: ArrayLike,
    wcf: ArrayLike,
    wco: ArrayLike,
    b: ArrayLike,
    i: ArrayLike,
    cs: ArrayLike,
    f: ArrayLike,
    o: ArrayLike,
    ci: ArrayLike,
    co: ArrayLike,
    cs_grad: ArrayLike,
    h_grad: ArrayLike,
    use_peephole: bool = False,
) -> Arrays:
    """`LSTMBlockCellGrad`: cs_prev_grad [B, C], dicfo [B, 4C], three vectors of peephole gradients.

    Without peepholes the vectors are zeros of whatever length the weights have.
    """
    cs_prev, wci, wcf, wco = _double(cs_prev, wci, wcf, wco)
    i, cs, f, o, ci, co, cs_grad, h_grad = _double(i, cs, f, o, ci, co, cs_grad, h_grad)
    do = h_grad * co * o * (1 - o)
    dcs = cs_grad + h_grad * o * (1 - co * co)
    if use_peephole:
        dcs = dcs + do * wco
    di = dcs * ci * i * (1 - i)
    dci = dcs * i * (1 - ci * ci)
    df = dcs * cs_prev * f * (1 - f)
    cs_prev_grad = dcs * f
    vectors = [np.zeros_like(weights) for weights in (wci, wcf, wco)]
    if use_peephole:
        cs_prev_grad = cs_prev_grad + di * wci + df * wcf
        vectors = [(di * cs_prev).sum(0), (df * cs_prev).sum(0), (do * cs).sum(0)]
    wci_grad, wcf_grad, wco_grad = vectors
    return {
        "cs_prev_grad": cs_prev_grad,
        "dicfo": _join(di, dci, df, do),
        "wci_grad": wci_grad,
        "wcf_grad": wcf_grad,
        "wco_grad": wco_grad,
    }


# Sequences. Time is the first axis of x and of all step tensors. What a step hands to the next is
# the state as it is stored, in the element type; what these functions return is not rounded.

STEPS_OF_LSTM = ("i", "cs", "f", "o", "ci", "co", "h")


def _stored(state: ArrayLike, like: ArrayLike) -> np.ndarray:
    """A state rounded to the element type of `like`, again in float64."""
    return state.astype(np.asarray(like).dtype).astype(np.float64)


def ifco_to_icfo(weights: ArrayLike) -> np.ndarray:
    """Swaps the second and the third quarter of the columns; `BlockLSTMV2` has them swapped."""
    first, second, third, fourth = np.split(np.asarray(weights), 4, axis=-1)
    return _join(first, third, second, fourth)


def block_lstm(
    seq_len_max: ArrayLike,
    x: ArrayLike,
    cs_prev: ArrayLike,
    h_prev: ArrayLike,
    w: ArrayLike,
    wci: ArrayLike,
    wcf: ArrayLike,
    wco: ArrayLike,
    b: ArrayLike,
    forget_bias: float = 1.0,
    cell_clip: float = 3.0,
    use_peephole: bool = False,
) -> Arrays:
    """`BlockLSTM`: `lstm_block_cell` for t < seq_len_max, each on the cs and h of the step before.

    Returns i, cs, f, o, ci, co, h of shape [T, B, C], zero for t >= seq_len_max.
    """
    outputs = {name: np.zeros((len(x),) + np.shape(cs_prev)) for name in STEPS_OF_LSTM}
    weights = dict(w=w, wci=wci, wcf=wcf, wco=wco, b=b)
    attributes: Dict[str, Any] = dict(
        forget_bias=forget_bias, cell_clip=cell_clip, use_peephole=use_peephole
    )
    for t in range(int(seq_len_max)):
        step = lstm_block_cell(x[t], cs_prev, h_prev, **weights, **attributes)
        for name in outputs:
            outputs[name][t] = step[name]
        cs_prev, h_prev = _stored(step["cs"], x), _stored(step["h"], x)
    return outputs


def block_lstm_v2(
    seq_len_max: ArrayLike,
    x: ArrayLike,
    cs_prev: ArrayLike,
    h_prev: ArrayLike,
    w: ArrayLike,
    wci: ArrayLike,
    wcf: ArrayLike,
    wco: ArrayLike,
    b: ArrayLike,
    cell_clip: float = 0.0,
    use_peephole: bool = False,
) -> Arrays:
    """`BlockLSTMV2`: `block_lstm` with the columns of w and b in the order IFCO, no forget_bias."""
    w, b = ifco_to_icfo(w), ifco_to_icfo(b)
    return block_lstm(
        seq_len_max, x, cs_prev, h_prev, w, wci, wcf, wco, b, 0.0, cell_clip, use_peephole
    )


def block_lstm_grad(
    seq_len_max: ArrayLike,
    x: ArrayLike,
    cs_prev: ArrayLike,
    h_prev: ArrayLike,
    w: ArrayLike,
    wci: ArrayLike,
    wcf: ArrayLike,
    wco: ArrayLike,
    b: ArrayLike,
    i: ArrayLike,
    cs: ArrayLike,
    f: ArrayLike,
    o: ArrayLike,
    ci: ArrayLike,
    co: ArrayLike,
    h: ArrayLike,
    cs_grad: ArrayLike,
    h_grad: ArrayLike,
    use_peephole: bool = False,
) -> Arrays:
    """`BlockLSTMGrad`: `lstm_block_cell_grad` from the last step to the first.

    What flows into cs and h of a step is what the caller gives and what the step after it returns.
    Returns x_grad [T, B, D] and gradients in the shapes of cs_prev, h_prev, w, wci, wcf, wco and b.
    """
    x, cs_prev, h_prev, w = _double(x, cs_prev, h_prev, w)
    input_size = x.shape[2]
    gradients = {"x": np.zeros_like(x)}
    gradients.update(cs_prev=np.zeros_like(cs_prev), h_prev=np.zeros_like(h_prev))
    gradients.update(w=np.zeros_like(w), b=np.zeros(np.shape(b)))
    gradients.update(
        {name: np.zeros(len(v)) for name, v in dict(wci=wci, wcf=wcf, wco=wco).items()}
    )
    for t in reversed(range(int(seq_len_max))):
        before = (cs[t - 1], h[t - 1]) if t else (cs_prev, h_prev)
        cs_before, h_before = _double(*before)
        incoming = (cs_grad[t] + gradients["cs_prev"], h_grad[t] + gradients["h_prev"])
        saved = (i[t], cs[t], f[t], o[t], ci[t], co[t])
        step = lstm_block_cell_grad(
            x[t],
            cs_before,
            h_before,
            w,
            wci,
            wcf,
            wco,
            b,
            *saved,
            *incoming,
            use_peephole=use_peephole,
        )
        through_w = step["dicfo"] @ w.T
        gradients["x"][t] = through_w[:, :input_size]
        gradients["h_prev"] = through_w[:, input_size:]
        gradients["cs_prev"] = step["cs_prev_grad"]
        gradients["w"] += _join(x[t], h_before).T @ step["dicfo"]
        gradients["b"] += step["dicfo"].sum(0)
        for name in ("wci", "wcf", "wco"):
            gradients[name] += step[name + "_grad"]
    order = ("x", "cs_prev", "h_prev", "w", "wci", "wcf", "wco", "b")
    return {name + "_grad": gradients[name] for name in order}


def block_lstm_grad_v2(
    seq_len_max: ArrayLike,
    x: ArrayLike,
    cs_prev: ArrayLike,
    h_prev: ArrayLike,
    w: ArrayLike,
    wci: ArrayLike,
    wcf: ArrayLike,
    wco: ArrayLike,
    b: ArrayLike,
    *rest: ArrayLike,
    **named: Any,
) -> Arrays:
    """`BlockLSTMGradV2`: `block_lstm_grad` with the columns of w and b in the order IFCO."""
    weights = (ifco_to_icfo(w), wci, wcf, wco, ifco_to_icfo(b))
    gradients = block_lstm_grad(seq_len_max, x, cs_prev, h_prev, *weights, *rest, **named)
    for name in ("w_grad", "b_grad"):
        gradients[name] = ifco_to_icfo(gradients[name])
    return gradients


def lstm(
    sequence_length: ArrayLike,
    x: ArrayLike,
    cs_prev: ArrayLike,
    h_prev: ArrayLike,
    w: ArrayLike,
    b: ArrayLike,
    activation: str = "tanh",
    recurrent_activation: str = "sigmoid",
) -> Arrays:
    """`BlockcellLSTM`: i, cs, f, o, ci, co, h of shape [T, B, C], zero where a row has ended.

    [i_bar | f_bar | ci_bar | o_bar] = [x | h'] @ w + b ;  i, f, o = S(i_bar), S(f_bar), S(o_bar)
    ci = A(ci_bar) ;  cs = i*ci + f*cs' ;  co = A(cs) ;  h = o*co
    """
    x_given = x
    state, gate = FUNCTIONS_OF_CELLS[activation], FUNCTIONS_OF_CELLS[recurrent_activation]
    x, cs, h, w, b = _double(x, cs_prev, h_prev, w, b)
    cs, h = cs.copy(), h.copy()
    outputs = {name: np.zeros((len(x),) + h.shape) for name in STEPS_OF_LSTM}
    for t in range(len(x)):
        rows = np.asarray(sequence_length) > t
        i, f, ci, o = np.split(_join(x[t][rows], h[rows]) @ w + b, 4, axis=1)
        i, f, ci, o = gate(i), gate(f), state(ci), gate(o)
        new = i * ci + f * cs[rows]
        co = state(new)
        for name, value in zip(STEPS_OF_LSTM, (i, new, f, o, ci, co, o * co)):
            outputs[name][t][rows] = value
        cs[rows], h[rows] = _stored(new, x_given), _stored(o * co, x_given)
    return outputs


def lstm_grad(
    sequence_length: ArrayLike,
    x: ArrayLike,
    cs_prev: ArrayLike,
    h_prev: ArrayLike,
    w: ArrayLike,
    b: ArrayLike,
    i: ArrayLike,
    cs: ArrayLike,
    f: ArrayLike,
    o: ArrayLike,
    ci: ArrayLike,
    co: ArrayLike,
    h: ArrayLike,
    cs_grad: ArrayLike,
    h_grad: ArrayLike,
    activation: str = "tanh",
    recurrent_activation: str = "sigmoid",
) -> Arrays:
    """`BlockcellLSTMGrad`: x_grad [T, B, D], and gradients in the shapes of the others."""
    state, gate = _SLOPES[activation], _SLOPES[recurrent_activation]
    x, cs_prev, h_prev, w = _double(x, cs_prev, h_prev, w)
    i, cs, f, o, ci, co, h = _double(i, cs, f, o, ci, co, h)
    x_grad, dcs_next, dh_next = np.zeros_like(x), np.zeros_like(cs_prev), np.zeros_like(h_prev)
    w_grad, b_grad = np.zeros_like(w), np.zeros(np.shape(b))
    for t in reversed(range(len(x))):
        rows = np.asarray(sequence_length) > t
        before = (cs[t - 1], h[t - 1]) if t else (cs_prev, h_prev)
        cs_before, h_before = (value[rows] for value in before)
        gates = (i[t][rows], f[t][rows], o[t][rows], ci[t][rows], co[t][rows])
        i_t, f_t, o_t, ci_t, co_t = gates
        dh = h_grad[t][rows] + dh_next[rows]
        dcs = cs_grad[t][rows] + dcs_next[rows] + dh * o_t * state(co_t)
        d_i, d_f = dcs * ci_t * gate(i_t), dcs * cs_before * gate(f_t)
        dz = _join(d_i, d_f, dcs * i_t * state(ci_t), dh * co_t * gate(o_t))
        through_w = dz @ w.T
        x_grad[t][rows], dh_next[rows] = np.split(through_w, [x.shape[2]], axis=1)
        dcs_next[rows] = dcs * f_t
        w_grad += _join(x[t][rows], h_before).T @ dz
        b_grad += dz.sum(0)
    found = dict(x=x_grad, cs_prev=dcs_next, h_prev=dh_next, w=w_grad, b=b_grad)
    return {name + "_grad": value for name, value in found.items()}


def _gru_step(
    x: ArrayLike,
    h_prev: ArrayLike,
    w_ru: ArrayLike,
    w_c: ArrayLike,
    b_ru: ArrayLike,
    b_c: ArrayLike,
    b_hc: ArrayLike,
    reset_after: bool,
    functions: Tuple[str, str],
) -> Arrays:
    """r, u, c, hc and h of one step."""
    state, gate = (FUNCTIONS_OF_CELLS[name] for name in functions)
    of_x, of_state = np.split(w_c, [x.shape[1]])
    r, u = np.split(gate(_join(x, h_prev) @ w_ru + b_ru), 2, axis=1)
    hc = h_prev @ of_state + b_hc if reset_after else r * h_prev
    c = state(x @ of_x + b_c + (r * hc if reset_after else hc @ of_state))
    return {"r": r, "u": u, "c": c, "hc": hc, "h": u * h_prev + (1 - u) * c}


def block_gru(
    sequence_length: ArrayLike,
    x: ArrayLike,
    h_prev: ArrayLike,
    w_ru: ArrayLike,
    w_c: ArrayLike,
    b_ru: ArrayLike,
    b_c: ArrayLike,
    b_hc: ArrayLike,
    reset_after: bool = False,
    activation: str = "tanh",
    recurrent_activation: str = "sigmoid",
) -> Arrays:
    """`BlockGRU`: r, u, c, hc, h [T, B, C] and h_last [B, C].

    [r_bar | u_bar] = [x | h'] @ w_ru + b_ru ;  r = S(r_bar), u = S(u_bar)
    reset_after = false:  hc = r*h' ;                   c = A(x @ w_c[:D] + hc @ w_c[D:] + b_c)
    reset_after = true:   hc = h' @ w_c[D:] + b_hc ;    c = A(x @ w_c[:D] + b_c + r*hc)
    h = u*h' + (1-u)*c

    h' is the state before the step. In row b, steps t >= sequence_length[b] leave the state alone
    and have zeros for outputs; h_last is the state in the end.
    """
    x_given, functions = x, (activation, recurrent_activation)
    x, h_prev, w_ru, w_c, b_ru, b_c, b_hc = _double(x, h_prev, w_ru, w_c, b_ru, b_c, b_hc)
    state, h_last = h_prev.copy(), h_prev.copy()
    outputs = {name: np.zeros((len(x),) + state.shape) for name in ("r", "u", "c", "hc", "h")}
    for t in range(len(x)):
        rows = np.asarray(sequence_length) > t
        weights = w_ru, w_c, b_ru, b_c, b_hc
        step = _gru_step(x[t][rows], state[rows], *weights, reset_after, functions)
        for name in outputs:
            outputs[name][t][rows] = step[name]
        state[rows], h_last[rows] = _stored(step["h"], x_given), step["h"]
    return dict(outputs, h_last=h_last)


def _gru_step_grad(
    x: ArrayLike,
    h_prev: ArrayLike,
    w_ru: ArrayLike,
    w_c: ArrayLike,
    r: ArrayLike,
    u: ArrayLike,
    c: ArrayLike,
    hc: ArrayLike,
    d_h: ArrayLike,
    reset_after: bool,
    functions: Tuple[str, str],
) -> Arrays:
    """Gradients of one step, with respect to x, the state, the weights and the biases."""
    of_x, of_state = np.split(w_c, [x.shape[1]])
    state, gate = (_SLOPES[name] for name in functions)
    d_c_bar = d_h * (1 - u) * state(c)
    d_u_bar = d_h * (h_prev - c) * gate(u)
    if reset_after:
        d_hc = d_c_bar * r
        d_r_bar = d_c_bar * hc * gate(r)
        through_hc, of_state_grad = d_hc @ of_state.T, h_prev.T @ d_hc
    else:
        d_hc = d_c_bar @ of_state.T
        d_r_bar = d_hc * h_prev * gate(r)
        through_hc, of_state_grad = d_hc * r, hc.T @ d_c_bar
    d_r_bar_u_bar = _join(d_r_bar, d_u_bar)
    d_x, d_h_prev = np.split(d_r_bar_u_bar @ w_ru.T, [x.shape[1]], axis=1)
    return {
        "x": d_x + d_c_bar @ of_x.T,
        "h_prev": d_h_prev + through_hc + d_h * u,
        "w_ru": _join(x, h_prev).T @ d_r_bar_u_bar,
        "w_c": np.concatenate([x.T @ d_c_bar, of_state_grad]),
        "b_ru": d_r_bar_u_bar.sum(0),
        "b_c": d_c_bar.sum(0),
        "b_hc": d_hc.sum(0),
    }


def block_gru_grad(
    sequence_length: ArrayLike,
    x: ArrayLike,
    h_prev: ArrayLike,
    w_ru: ArrayLike,
    w_c: ArrayLike,
    b_ru: ArrayLike,
    b_c: ArrayLike,
    b_hc: ArrayLike,
    r: ArrayLike,
    u: ArrayLike,
    c: ArrayLike,
    hc: ArrayLike,
    h: ArrayLike,
    h_grad: ArrayLike,
    h_last_grad: ArrayLike,
    reset_after: bool = False,
    activation: str = "tanh",
    recurrent_activation: str = "sigmoid",
) -> Arrays:
    """`BlockGRUGrad`: gradients with respect to the float inputs of `block_gru`, in their shapes.

    Only the steps t < sequence_length[b] of a row b take part; its gradient of h_last passes by the
    others. Without reset_after, b_hc has no part in anything and its gradient is zero.
    """
    x, h_prev, w_ru, w_c = _double(x, h_prev, w_ru, w_c)
    r, u, c, hc, h, h_grad, carry = _double(r, u, c, hc, h, h_grad, h_last_grad)
    carry, x_grad = carry.copy(), np.zeros_like(x)
    sums = {name: np.zeros(np.shape(v)) for name, v in dict(w_ru=w_ru, w_c=w_c).items()}
    sums.update({name: np.zeros(len(v)) for name, v in dict(b_ru=b_ru, b_c=b_c, b_hc=b_hc).items()})
    summed = [name for name in sums if reset_after or name != "b_hc"]
    for t in reversed(range(len(x))):
        rows = np.asarray(sequence_length) > t
        before = (h[t - 1] if t else h_prev)[rows]
        saved = r[t][rows], u[t][rows], c[t][rows], hc[t][rows]
        d_h = h_grad[t][rows] + carry[rows]
        call = (x[t][rows], before, w_ru, w_c, *saved, d_h, reset_after)
        step = _gru_step_grad(*call, (activation, recurrent_activation))
        x_grad[t][rows], carry[rows] = step["x"], step["h_prev"]
        for name in summed:
            sums[name] += step[name]
    gradients = dict(x=x_grad, h_prev=carry, **sums)
    return {name + "_grad": value for name, value in gradients.items()}


FUNCTIONS: Dict[str, Callable[..., Arrays]] = {
    "GRUBlockCell": gru_block_cell,
    "GRUBlockCellGrad": gru_block_cell_grad,
    "LSTMBlockCell": lstm_block_cell,
    "LSTMBlockCellGrad": lstm_block_cell_grad,
    "BlockLSTM": block_lstm,
    "BlockLSTMGrad": block_lstm_grad,
    "BlockLSTMV2": block_lstm_v2,
    "BlockLSTMGradV2": block_lstm_grad_v2,
    "BlockGRU": block_gru,
    "BlockGRUGrad": block_gru_grad,
    "BlockcellLSTM": lstm,
    "BlockcellLSTMGrad": lstm_grad,
}
"""The function of each op."""
