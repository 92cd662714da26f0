"""The ops in plain TensorFlow ops and float64, written from their equations.

TensorFlow can differentiate these as often as one likes: what it finds is the truth for the
gradients of the real ops. Each function takes the op's inputs and attributes by name and returns a
dictionary of its outputs. Times and lengths have to be numbers, the loops are unrolled.
"""

import numpy as np
import tensorflow as tf


def _clip(values, limit):
    """Clips, if there is a limit; counts as the identity in gradients, as in the real ops."""
    if not limit > 0:
        return values
    return values + tf.stop_gradient(tf.clip_by_value(values, -limit, limit) - values)


def _lstm_step(x, cs_prev, h_prev, w, peepholes, b, layout, forget_bias, cell_clip):
    bars = tf.split(tf.matmul(tf.concat([x, h_prev], axis=1), w) + b, 4, axis=1)
    i, ci, f, o = (bars[layout.index(gate)] for gate in "ICFO")
    wci, wcf, wco = peepholes or (0.0, 0.0, 0.0)
    i = tf.sigmoid(i + wci * cs_prev)
    f = tf.sigmoid(f + forget_bias + wcf * cs_prev)
    ci = tf.tanh(ci)
    cs = _clip(i * ci + f * cs_prev, cell_clip)
    o = tf.sigmoid(o + wco * cs)
    co = tf.tanh(cs)
    return {"i": i, "cs": cs, "f": f, "o": o, "ci": ci, "co": co, "h": o * co}


def lstm_block_cell(
    x, cs_prev, h_prev, w, wci, wcf, wco, b, forget_bias=1.0, cell_clip=3.0, use_peephole=False
):
    peepholes = (wci, wcf, wco) if use_peephole else None
    return _lstm_step(x, cs_prev, h_prev, w, peepholes, b, "ICFO", forget_bias, cell_clip)


def _block_lstm(layout, seq_len_max, x, cs_prev, h_prev, w, peepholes, b, forget_bias, cell_clip):
    length, time = int(seq_len_max), int(x.shape[0])
    steps, cs, h = [], cs_prev, h_prev
    for t in range(length):
        steps.append(_lstm_step(x[t], cs, h, w, peepholes, b, layout, forget_bias, cell_clip))
        cs, h = steps[-1]["cs"], steps[-1]["h"]
    tail = [tf.zeros_like(h_prev)] * (time - length)
    names = ("i", "cs", "f", "o", "ci", "co", "h")
    return {name: tf.stack([step[name] for step in steps] + tail) for name in names}


def block_lstm(
    seq_len_max,
    x,
    cs_prev,
    h_prev,
    w,
    wci,
    wcf,
    wco,
    b,
    forget_bias=1.0,
    cell_clip=3.0,
    use_peephole=False,
):
    peepholes = (wci, wcf, wco) if use_peephole else None
    return _block_lstm(
        "ICFO", seq_len_max, x, cs_prev, h_prev, w, peepholes, b, forget_bias, cell_clip
    )


def block_lstm_v2(
    seq_len_max, x, cs_prev, h_prev, w, wci, wcf, wco, b, cell_clip=0.0, use_peephole=False
):
    peepholes = (wci, wcf, wco) if use_peephole else None
    return _block_lstm("IFCO", seq_len_max, x, cs_prev, h_prev, w, peepholes, b, 0.0, cell_clip)


def _gru_step(
    x, h_prev, w_ru, w_c, b_ru, b_c, b_hc, reset_after, of_state=tf.tanh, of_gates=tf.sigmoid
):
    input_size = int(x.shape[1])
    r, u = tf.split(of_gates(tf.matmul(tf.concat([x, h_prev], 1), w_ru) + b_ru), 2, axis=1)
    if reset_after:
        hc = tf.matmul(h_prev, w_c[input_size:]) + b_hc
        c = of_state(tf.matmul(x, w_c[:input_size]) + b_c + r * hc)
    else:
        hc = r * h_prev
        c = of_state(tf.matmul(tf.concat([x, hc], axis=1), w_c) + b_c)
    return {"r": r, "u": u, "c": c, "hc": hc, "h": u * h_prev + (1 - u) * c}


FUNCTIONS = {
    "tanh": tf.tanh,
    "sigmoid": tf.sigmoid,
    "relu": tf.nn.relu,
    "linear": tf.identity,
    "hard_sigmoid": lambda x: tf.nn.relu6(x + 3.0) / 6.0,
    "hard_sigmoid_keras2": lambda x: tf.clip_by_value(0.2 * x + 0.5, 0.0, 1.0),
    # TensorFlow has no second gradient of its own op.
    "softsign": lambda x: x / (1.0 + tf.abs(x)),
    "softplus": tf.nn.softplus,
    "elu": tf.nn.elu,
    "selu": tf.nn.selu,
}
"""By the names that attributes have for them."""


def lstm(
    sequence_length, x, cs_prev, h_prev, w, b, activation="tanh", recurrent_activation="sigmoid"
):
    of_state, of_gates = FUNCTIONS[activation], FUNCTIONS[recurrent_activation]
    steps, cs, h = [], cs_prev, h_prev
    for t in range(int(x.shape[0])):
        valid = (t < np.asarray(sequence_length)).astype(np.float64)[:, np.newaxis]
        bars = tf.split(tf.matmul(tf.concat([x[t], h], axis=1), w) + b, 4, axis=1)
        i, f, ci, o = [*map(of_gates, bars[:2]), of_state(bars[2]), of_gates(bars[3])]
        new = i * ci + f * cs
        co = of_state(new)
        step = {"i": i, "cs": new, "f": f, "o": o, "ci": ci, "co": co, "h": o * co}
        steps.append({name: value * valid for name, value in step.items()})
        cs, h = steps[-1]["cs"], steps[-1]["h"]
    return {name: tf.stack([step[name] for step in steps]) for name in steps[0]}


def gru_block_cell(x, h_prev, w_ru, w_c, b_ru, b_c):
    outputs = _gru_step(x, h_prev, w_ru, w_c, b_ru, b_c, None, reset_after=False)
    del outputs["hc"]
    return outputs


def block_gru(
    sequence_length,
    x,
    h_prev,
    w_ru,
    w_c,
    b_ru,
    b_c,
    b_hc,
    reset_after=False,
    activation="tanh",
    recurrent_activation="sigmoid",
):
    functions = FUNCTIONS[activation], FUNCTIONS[recurrent_activation]
    steps, h = [], h_prev
    for t in range(int(x.shape[0])):
        valid = (t < np.asarray(sequence_length)).astype(np.float64)[:, np.newaxis]
        step = _gru_step(x[t], h, w_ru, w_c, b_ru, b_c, b_hc, reset_after, *functions)
        steps.append({name: value * valid for name, value in step.items()})
        h = step["h"] * valid + h * (1 - valid)
    outputs = {
        name: tf.stack([step[name] for step in steps]) for name in ("r", "u", "c", "hc", "h")
    }
    return dict(outputs, h_last=h)
