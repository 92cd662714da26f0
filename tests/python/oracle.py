"""The cells and their gradients in float64 NumPy, written from their equations.

Sizes: batch (B), input_size (D), cell_size (C). Names are those of `tf.raw_ops`. `[a | b]` is
concatenation along the last axis, S the logistic function. Every function converts its inputs to
float64 and returns a dictionary of outputs in the order of the op.
"""

import numpy as np


def logistic(z):
    with np.errstate(over="ignore"):
        return 1.0 / (1.0 + np.exp(-z))


def _double(*arrays):
    return [np.asarray(array, dtype=np.float64) for array in arrays]


def _join(*blocks):
    return np.concatenate(blocks, axis=-1)


def gru_block_cell(x, h_prev, w_ru, w_c, b_ru, b_c):
    """Forward step: r, u, c, h of shape [B, C].

    [r_bar | u_bar] = [x | h_prev] @ w_ru + b_ru ;  r = S(r_bar), u = S(u_bar)
    c = tanh([x | r*h_prev] @ w_c + b_c) ;          h = u*h_prev + (1-u)*c
    """
    x, h_prev, w_ru, w_c, b_ru, b_c = _double(x, h_prev, w_ru, w_c, b_ru, b_c)
    r, u = np.split(logistic(_join(x, h_prev) @ w_ru + b_ru), 2, axis=1)
    c = np.tanh(_join(x, r * h_prev) @ w_c + b_c)
    return {"r": r, "u": u, "c": c, "h": u * h_prev + (1 - u) * c}


def _gru_backward(x, h_prev, w_ru, w_c, r, u, c, d_r, d_u, d_c, d_h):
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


def gru_block_cell_grad(x, h_prev, w_ru, w_c, b_ru, b_c, r, u, c, d_h):
    """`GRUBlockCellGrad`: d_x [B, D], d_h_prev [B, C], d_c_bar [B, C], d_r_bar_u_bar [B, 2C]."""
    x, h_prev, w_ru, w_c, r, u, c, d_h = _double(x, h_prev, w_ru, w_c, r, u, c, d_h)
    zero = np.zeros_like(d_h)
    return _gru_backward(x, h_prev, w_ru, w_c, r, u, c, zero, zero, zero, d_h)


def lstm_block_cell(
    x, cs_prev, h_prev, w, wci, wcf, wco, b, forget_bias=1.0, cell_clip=3.0, use_peephole=False
):
    """Forward step: i, cs, f, o, ci, co, h of shape [B, C].

    [i_bar | ci_bar | f_bar | o_bar] = [x | h_prev] @ w + b,  P = 1 with use_peephole, else 0
    i = S(i_bar + P*wci*cs_prev) ;  f = S(f_bar + forget_bias + P*wcf*cs_prev)
    ci = tanh(ci_bar) ;             cs = i*ci + f*cs_prev, clipped to +-cell_clip if that is > 0
    o = S(o_bar + P*wco*cs) ;       co = tanh(cs) ;  h = o*co
    """
    x, cs_prev, h_prev, w, wci, wcf, wco, b = _double(x, cs_prev, h_prev, w, wci, wcf, wco, b)
    i_bar, ci_bar, f_bar, o_bar = np.split(_join(x, h_prev) @ w + b, 4, axis=1)
    f_bar = f_bar + forget_bias
    if use_peephole:
        i_bar = i_bar + wci * cs_prev
        f_bar = f_bar + wcf * cs_prev
    i, f, ci = logistic(i_bar), logistic(f_bar), np.tanh(ci_bar)
    cs = i * ci + f * cs_prev
    if cell_clip > 0:
        cs = np.clip(cs, -cell_clip, cell_clip)
    o = logistic(o_bar + wco * cs if use_peephole else o_bar)
    co = np.tanh(cs)
    return {"i": i, "cs": cs, "f": f, "o": o, "ci": ci, "co": co, "h": o * co}


def lstm_block_cell_grad(
    x,
    cs_prev,
    h_prev,
    w,
    wci,
    wcf,
    wco,
    b,
    i,
    cs,
    f,
    o,
    ci,
    co,
    cs_grad,
    h_grad,
    use_peephole=False,
):
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


def numeric_gradients(cell, inputs, weights, step=1e-6):
    """Gradients of sum(weights[output] * cell(**inputs)[output]) by central differences.

    Args:
      cell: A forward function of this module.
      inputs: Dictionary of its array inputs.
      weights: Dictionary of arrays, for some of its outputs: the gradients that flow in there.
      step: Half the distance of the two points.

    Returns:
      A dictionary with the gradient of every input.
    """

    def loss(**changed):
        outputs = cell(**changed)
        return sum(
            np.sum(np.asarray(weights[name], np.float64) * outputs[name]) for name in weights
        )

    inputs = {name: np.array(value, dtype=np.float64) for name, value in inputs.items()}
    gradients = {}
    for name, value in inputs.items():
        gradient = np.zeros_like(value)
        for index in np.ndindex(*value.shape):
            at = value[index]
            value[index] = at + step
            above = loss(**inputs)
            value[index] = at - step
            below = loss(**inputs)
            value[index] = at
            gradient[index] = (above - below) / (2 * step)
        gradients[name] = gradient
    return gradients
