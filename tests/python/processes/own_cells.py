"""Cells as people write them, for `graph_pass/test_own_cells.py`: a function runs each of them."""

import itertools

import numpy as np
import tensorflow as tf

import blockcell
from rewrite import OPTIMIZED, config, counted, run

v1 = tf.compat.v1
BATCH, STEPS, INPUT, CELL = 3, 5, 4, 6


def prepare():
    blockcell.load()


def _preactivations(kind, x, h, columns, name):
    """The product of [x, h] with weights, or one of each, and what a kind of bias adds to it."""
    rows = x.shape.as_list()[1] + h.shape.as_list()[1]
    with v1.variable_scope(name, reuse=v1.AUTO_REUSE, use_resource=False):
        if kind in TWO:
            return _of_two(kind, x, h, columns)
        z = tf.matmul(tf.concat([x, h], 1), v1.get_variable("w", [rows, columns]))
        if kind == "none":
            return z
        shape = {"row": [1, columns], "one": [1]}.get(kind, [columns])
        b = v1.get_variable("b", shape, initializer=v1.random_normal_initializer(stddev=0.5))
    return b + z if kind == "reversed" else z + b


def _of_two(kind, x, h, columns):
    """The sum of a product of x, one of h, and biases."""

    def product(left, name):
        return tf.matmul(left, v1.get_variable(name, [left.shape.as_list()[1], columns]))

    def bias(name):
        return v1.get_variable(name, [columns], initializer=v1.random_normal_initializer())

    if kind == "two":
        return product(x, "w_x") + product(h, "w_h") + bias("b")
    if kind == "two_reversed":
        return tf.nn.bias_add(product(h, "w_h") + product(x, "w_x"), bias("b"))
    if kind == "two_biases":
        return (product(x, "w_x") + bias("b_x")) + (product(h, "w_h") + bias("b_h"))
    return product(x, "w_x") + product(h, "w_h")


def _lstm(kind, x, states):
    c, h = states
    bars = tf.split(_preactivations(kind, x, h, 4 * CELL, "lstm"), 4, 1)
    i, j, f, o = (bars[ORDERS.get(kind, "ijfo").index(gate)] for gate in "ijfo")
    c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
    return c, tf.tanh(c) * tf.sigmoid(o)


def _gru(kind, x, states):
    (h,) = states
    of_z = "two" if kind in FORMS else kind
    z = _preactivations(of_z, x, h, 2 * CELL, "gates")
    if kind == "split_first":
        gates = [tf.sigmoid(bar) for bar in tf.split(z, 2, 1)]
    else:
        gates = tf.split(tf.sigmoid(z), 2, 1)
    r, u = gates[::-1] if kind == "update_first" else gates
    c = tf.tanh(_preactivations(of_z, x, r * h, CELL, "candidate"))
    if kind == "of_candidate":
        return ((1.0 - u) * h + u * c,)
    return (u * h + (1.0 - u) * c,)


# Orders of the gates, for an LSTM whose bias a sum adds.
ORDERS = {"i_f_o_j": "ifoj", "i_f_j_o": "ifjo", "f_i_o_j": "fioj"}
CELLS = {"lstm": (_lstm, 2), "gru": (_gru, 1)}
# The same with a product of x and one of h.
TWO = ("two", "two_reversed", "two_biases", "two_none")
# Gates of a GRU of two products: in the other order, as the candidate's share, and split before
# their function.
FORMS = ("update_first", "of_candidate", "split_first")
# What is added to the products. The last two broadcast as no BiasAdd does.
KINDS = ("none", "sum", "reversed", "row", "one")
# Masks between the steps.
MASKED = ("zoneout", "variational")


def _zoneout(after, before):
    """Each element of the state stays as it was now and then (Krueger et al., 2016)."""
    kept = [tf.floor(0.3 + tf.random.uniform(tf.shape(state))) for state in before]
    mixed = zip(kept, before, after)
    return tuple(share * old + (1.0 - share) * new for share, old, new in mixed)


def _states(step, kind, x, states, loop):
    """The states after all steps."""
    plain = step
    # One mask for all steps, as of `DropoutWrapper` with `variational_recurrent`.
    masks = [tf.floor(0.7 + tf.random.uniform(tf.shape(state))) / 0.7 for state in states]

    def step(kind, x, states):
        after = plain(kind, x, states)
        if kind == "variational":
            return tuple(state * mask for state, mask in zip(after, masks))
        return _zoneout(after, states) if kind == "zoneout" else after

    if not loop:
        for t in range(STEPS):
            states = step(kind, x[:, t], states)
        return states
    # The variables are made outside of the loop.
    step(kind, x[:, 0], states)
    return v1.while_loop(
        lambda t, *_: t < STEPS,
        lambda t, *states: (t + 1, *step(kind, tf.gather(x, t, axis=1), states)),
        [tf.constant(0), *states],
    )[1:]


def _cell(cell, kind, loop, train, optimized):
    step, count = CELLS[cell]
    random = np.random.RandomState(5)
    with tf.Graph().as_default():
        v1.set_random_seed(7)
        # The batch's size is not known before.
        x = v1.placeholder(tf.float32, [None, STEPS, INPUT])
        first = [v1.placeholder(tf.float32, [None, CELL]) for _ in range(count)]
        states = _states(step, kind, x, tuple(first), loop)
        fetches = list(states)
        if train:
            loss = tf.add_n([tf.reduce_sum(state * state) for state in states])
            fetches += v1.gradients(loss, [*v1.trainable_variables(), x, *first])
        shapes = [[BATCH, STEPS, INPUT]] + [[BATCH, CELL]] * count
        feeds = dict(zip([x, *first], (random.uniform(-1, 1, shape) for shape in shapes)))
        with v1.Session(config=config(optimized)) as session:
            for variable in v1.trainable_variables():
                value = random.uniform(-0.5, 0.5, variable.shape.as_list())
                session.run(variable.initializer, {variable.initial_value: value})
            return counted(lambda: run(session, fetches, feeds))


def name_of(cell, kind, loop, train, optimized):
    words = [cell, kind, "loop" if loop else "steps", "training" if train else "inference"]
    return "_".join(words) + ("" if optimized else "_not_optimized")


ALL = {
    name_of(*of): of
    for of in itertools.product(
        CELLS, (*KINDS, *MASKED, *ORDERS, *TWO, *FORMS), (False, True), (False, True), OPTIMIZED
    )
    if of[1] not in {"lstm": FORMS, "gru": ORDERS}[of[0]]
}


class _Cell:
    """A cell for `dynamic_rnn`, which takes whatever has these attributes."""

    state_size = (CELL, CELL)
    output_size = CELL

    def __init__(self, kind):
        self._kind = kind
        if kind in PROJECTED:
            self.state_size = (CELL, PROJECTED[kind])
            self.output_size = INPUT if "added" in kind else PROJECTED[kind]

    def __call__(self, x, states, scope=None):
        kind = self._kind
        c, h = _lstm(kind if kind in TWO else "two" if kind.startswith("two") else "sum", x, states)
        if kind in PROJECTED:
            with v1.variable_scope("projection", reuse=v1.AUTO_REUSE, use_resource=False):
                h = tf.matmul(h, v1.get_variable("w", [CELL, PROJECTED[kind]]))
        if kind.endswith("clipped"):
            h = tf.clip_by_value(h, -0.2, 0.2)
        return (x + h if "added" in kind else h), (c, h)

    def zero_state(self, batch, dtype):
        return tuple(tf.zeros([batch, CELL], dtype) for _ in range(2))


class _Gru:
    """The same with a GRU."""

    state_size = output_size = CELL

    def __init__(self, kind):
        self._kind = kind

    def __call__(self, x, state, scope=None):
        (h,) = _gru(self._kind, x, (state,))
        return h, h

    def zero_state(self, batch, dtype):
        return tf.zeros([batch, CELL], dtype)


def _rnn(kind, lengths, rows, optimized):
    """`dynamic_rnn`, with lengths of rows or without, from a first state of so many rows."""
    random = np.random.RandomState(6)
    with tf.Graph().as_default():
        v1.set_random_seed(7)
        x = v1.placeholder(tf.float32, [None, STEPS, INPUT])
        cell = _Gru(GRUS[kind]) if kind in GRUS else _Cell(kind)
        sizes = tf.nest.flatten(cell.state_size)
        first = tuple(v1.placeholder(tf.float32, [None, size]) for size in sizes)
        states = first[0] if kind in GRUS else first
        cell(x[:, 0], states)  # The variables are made outside of the loop.
        ended = tf.constant([STEPS, 2, 0]) if lengths else None
        h, last = v1.nn.dynamic_rnn(cell, x, ended, states)
        feeds = {x: random.uniform(-1, 1, [BATCH, STEPS, INPUT])}
        for state in first:
            feeds[state] = random.uniform(-1, 1, [rows, state.shape.as_list()[1]])
        with v1.Session(config=config(optimized)) as session:
            for variable in v1.trainable_variables():
                value = random.uniform(-0.5, 0.5, variable.shape.as_list())
                session.run(variable.initializer, {variable.initial_value: value})
            return counted(lambda: run(session, [h, *tf.nest.flatten(last)], feeds))


# Cells whose outputs are projected to so many numbers, or have x added, as wide or not.
PROJECTED = {
    "projected": 3,
    "projected_clipped": 3,
    "projected_added": INPUT,
    "two_projected_added_clipped": INPUT,
    "projected_added_to_one": 1,
}


# GRUs by the names of their loops.
GRUS = {f"gru_{kind}": kind for kind in ("sum", "two", *FORMS)}


def rnn_name(kind, lengths, rows, optimized):
    words = ["rnn", kind, "lengths" if lengths else "whole", str(rows)]
    return "_".join(words) + ("" if optimized else "_not_optimized")


# By kind, whether there are lengths, and the rows of the first state.
RNNS = {
    rnn_name(*of): of
    for of in itertools.product((*TWO, *PROJECTED, *GRUS), (False, True), (1, BATCH), OPTIMIZED)
    if of[2] == BATCH or not (of[1] or of[0] in PROJECTED or of[0] == "gru_sum")
}
for _name, _of in RNNS.items():
    globals()[_name] = lambda of=_of: _rnn(*of)
for _name, _of in ALL.items():
    globals()[_name] = lambda of=_of: _cell(*of)
