"""Gradients against differences of the ops' own float32 values, for TensorFlow's and for ours."""

import numpy as np
import pytest
import tensorflow as tf

from blockcell.op_table import BLOCK_GRU, BLOCK_LSTM, BLOCK_LSTM_V2, GRU_CELL, LSTM, LSTM_CELL
from helpers import gradient_cases, kernels, ways
from helpers.gradient_cases import OUTPUTS, STATES, inputs_for

# TensorFlow's own gradient of both ops, which loading the library has replaced.
try:
    from tensorflow.python.ops.rnn_grad import _block_lstm_grad as stock_gradient
except ImportError:
    stock_gradient = None
else:
    for name in (BLOCK_LSTM, BLOCK_LSTM_V2):
        tf.RegisterGradient("Stock" + name)(stock_gradient)
needs_stock = pytest.mark.skipif(
    stock_gradient is None, reason="this TensorFlow has its gradient elsewhere"
)

ATTRIBUTES = {
    GRU_CELL: {},
    LSTM_CELL: {"use_peephole": True, "cell_clip": 0.0},
    BLOCK_LSTM: {"use_peephole": True, "cell_clip": 0.0},
    BLOCK_LSTM_V2: {"use_peephole": True},
    BLOCK_GRU: {"reset_after": True},
    LSTM: {"activation": "sigmoid", "recurrent_activation": "hard_sigmoid"},
}
LIMIT = 2e-3
STEP = 1e-2  # Rounding disturbs a difference by about 1e-7 / STEP, curvature by STEP ** 2.


def errors(op, names, stock=False):
    """How far each input's gradient is from a difference along a random direction of that input.

    The loss is a weighted sum of the outputs of these names; it is added up in float64.
    """
    inputs = inputs_for(op)
    random = np.random.RandomState(4)
    overrides = {op: "Stock" + op} if stock else {}
    with ways.our_graph() as graph, graph.gradient_override_map(overrides):
        feeds = {n: tf.compat.v1.placeholder(v.dtype, v.shape) for n, v in inputs.items()}
        outputs = kernels.call(op, feeds, **ATTRIBUTES[op])
        outputs = {name: outputs[name] for name in names}
        factors = {n: random.standard_normal(v.shape).astype("f") for n, v in outputs.items()}
        sources = ways.floating(feeds)
        gradients = tf.gradients(
            list(outputs.values()), list(sources.values()), [factors[n] for n in outputs]
        )
        gradients = dict(zip(sources, gradients))
    found = {}
    with tf.compat.v1.Session(graph=graph) as session:

        def run(fetches, **moved):
            return session.run(fetches, {feeds[n]: dict(inputs, **moved)[n] for n in inputs})

        used = inputs.get("seq_len_max")  # TensorFlow's kernels leave the rest undefined.

        def loss(**moved):
            values = run(outputs, **moved)
            return sum(np.sum(factors[n][:used] * values[n].astype("d")[:used]) for n in values)

        for name, gradient in run(gradients).items():
            direction = random.standard_normal(gradient.shape)
            above, below = (
                loss(**{name: inputs[name] + distance * direction}) for distance in (STEP, -STEP)
            )
            slope = np.sum(gradient.astype("d") * direction)
            scale = np.linalg.norm(gradient) * np.linalg.norm(direction)
            found[name] = abs(slope - (above - below) / (2 * STEP)) / scale
    return found


@pytest.mark.parametrize("op", gradient_cases.OPS)
def test_ours(op):
    for names in (STATES[op], OUTPUTS[op]):
        found = errors(op, names)
        assert max(found.values()) < LIMIT, found


# TensorFlow's own gradients. docs/ops.md says what is wrong with them. A TensorFlow may mend that,
# which is no failure of ours.


def skip_if_mended(found):
    if max(found.values()) < LIMIT:
        pytest.skip(f"TensorFlow {tf.__version__} mended it: tensorflow-errata.md should say so")


@needs_stock
def test_tensorflows_of_block_lstm_v2_are_wrong():
    found = errors(BLOCK_LSTM_V2, STATES[BLOCK_LSTM_V2], stock=True)
    skip_if_mended(found)
    assert min(found[name] for name in ("x", "h_prev", "w", "b")) > 5e-2, found


@needs_stock
def test_tensorflows_of_block_lstm_drop_gradients():
    assert max(errors(BLOCK_LSTM, STATES[BLOCK_LSTM], stock=True).values()) < LIMIT
    found = errors(BLOCK_LSTM, OUTPUTS[BLOCK_LSTM], stock=True)
    skip_if_mended(found)
    assert max(found.values()) > 5e-2, found
