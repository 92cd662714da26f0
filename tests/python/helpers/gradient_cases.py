"""What the tests of gradients run over: ops, attributes, and the outputs that a loss uses."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from blockcell import op_table
from blockcell.op_table import BLOCK_GRU, BLOCK_LSTM, BLOCK_LSTM_V2, GRU_CELL, LSTM, LSTM_CELL
from blockcell_tools.reference.inputs import forward_inputs
from helpers import checks, sampling, ways

# With gradients at these outputs alone, the op's gradient kernel does it all.
STATES = {
    GRU_CELL: ("h",),
    LSTM_CELL: ("cs", "h"),
    BLOCK_LSTM: ("cs", "h"),
    BLOCK_LSTM_V2: ("cs", "h"),
    BLOCK_GRU: ("h", "h_last"),
    LSTM: ("cs", "h"),
}
OPS = tuple(STATES)
OUTPUTS = {op: tuple(op_table.OPS[op].outputs) for op in OPS}
GATES = {op: tuple(name for name in OUTPUTS[op] if name not in STATES[op]) for op in OPS}
GRADIENT_OPS = {op_table.OPS[op].forward: op for op in op_table.GRADIENTS}
TIME = {1: 4, 2: 3, 3: 2}  # By the order of the gradients: what is unrolled here takes time.

# The attributes of each op; some clip about half of the cell states.
VARIANTS = [
    (GRU_CELL, {}),
    (LSTM_CELL, {"use_peephole": False, "cell_clip": 0.5}),
    (LSTM_CELL, {"use_peephole": True, "cell_clip": 0.0}),
    (BLOCK_LSTM, {"use_peephole": False, "cell_clip": 0.0}),
    (BLOCK_LSTM, {"use_peephole": True, "cell_clip": 0.5}),
    (BLOCK_LSTM_V2, {"use_peephole": False, "cell_clip": 0.5}),
    (BLOCK_LSTM_V2, {"use_peephole": True, "cell_clip": 0.0}),
    (BLOCK_GRU, {"reset_after": False}),
    (BLOCK_GRU, {"reset_after": True}),
    (
        BLOCK_GRU,
        {"reset_after": True, "activation": "sigmoid", "recurrent_activation": "hard_sigmoid"},
    ),
    (LSTM, {}),
    (LSTM, {"activation": "relu", "recurrent_activation": "hard_sigmoid_keras2"}),
    (LSTM, {"activation": "linear", "recurrent_activation": "tanh"}),
    (LSTM, {"activation": "softsign", "recurrent_activation": "softplus"}),
    (LSTM, {"activation": "selu", "recurrent_activation": "elu"}),
]
WITH_SWITCH = [variant for variant in VARIANTS if True in variant[1].values() or not variant[1]]


def label(op, attributes, names=()):
    """An id for pytest."""
    switch = op_table.OPS[op].switch
    parts = [op] + [switch] * bool(attributes.get(switch)) + ["+".join(names)] * bool(names)
    parts += [attributes[name] for name in op_table.FUNCTIONS if name in attributes]
    return "-".join(parts)


def params(variants):
    return [pytest.param(op, at, id=label(op, at)) for op, at in variants]


def with_losses(losses, variants=VARIANTS):
    """Parameters op, attributes and names of outputs; `losses` makes lists of these for an op.

    The gradients of gates are Python code, the same in every release: TensorFlow 1.15 has a sample.
    """
    cases = [(op, at, names) for op, at in variants for names in losses(op)]
    cases = sampling.sample(cases, _features, whole=sampling.whole_in(tf))
    return [pytest.param(op, at, names, id=label(op, at, names)) for op, at, names in cases]


def _features(case):
    """The switch, each output, and whether there is more than one."""
    op, attributes, names = case
    chosen = sorted(map(str, attributes.values()))
    return [(op, *chosen), *((op, n) for n in names), (op, len(names) > 1)]


def inputs_for(
    op, dtype=np.float32, batch=3, input_size=2, cell_size=4, time=TIME[1], length="some"
):
    """Inputs, with all steps but one in use (where rows have lengths: none to all of them)."""
    if length == "some":
        length = max(time - 1, 0)
        if "sequence_length" in op_table.OPS[op].inputs:
            length = np.linspace(0, time, batch).astype(int)
    return forward_inputs(op, batch, input_size, cell_size, time=time, dtype=dtype, length=length)


def check(way, op, attributes, names, order=1, inputs=None, limit=1e-5):
    """Compares the gradients of a loss on some outputs of an op with those of the plain op."""
    if inputs is None:
        inputs = inputs_for(op, time=TIME[order])
        want = _truth(op, names, tuple(sorted(attributes.items())), order)
    else:
        want = ways.truth(op, inputs, names, attributes, order)
    loss = ways.loss_of(ways.real(op, attributes), names)
    take = ways.first_order if order == 1 else ways.second_order
    got = take(way, loss, inputs)
    assert all(got[name].dtype == inputs[name].dtype for name in got)
    checks.assert_close(got, want, limit)
    return got


@functools.lru_cache(maxsize=None)
def _truth(op, names, attributes, order):
    return ways.truth(op, inputs_for(op, time=TIME[order]), names, dict(attributes), order)
