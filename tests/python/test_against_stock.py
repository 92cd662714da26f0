"""Our kernels against the stock ones, in one process; and where stock is wrong, right."""

import numpy as np
import pytest
import tensorflow as tf

import cases
import kernels
from cases import LSTM
from test_against_oracle import BATCH, CELL, INPUT, LARGE, VARIANTS

# The stock kernels divide by zero where input_size or cell_size is 0.
GRID = [(b, d, c) for b in BATCH for d in INPUT for c in CELL if d and c] + LARGE
# Stock is off by up to 6e-7 in float; in half, which it accumulates in half, by up to 1.4e-2.
LIMIT = {np.float32: 4e-6, np.float16: 3e-2}


@pytest.mark.parametrize("sizes", GRID, ids=lambda sizes: "x".join(map(str, sizes)))
@pytest.mark.parametrize("op, dtype, attributes", VARIANTS)
def test_same_as_stock(op, dtype, attributes, sizes):
    inputs = cases.grad_inputs(op, *sizes, dtype=dtype, seed=2, **attributes)
    ours = kernels.run(op, inputs, kernels.OURS, **attributes)
    stock = kernels.run(op, inputs, kernels.STOCK, **attributes)
    cases.assert_close(ours, stock, LIMIT[dtype])


def run_with_temporaries(kernel, inputs):
    """Runs LSTMBlockCellGrad on copies that nothing else refers to, as inside a graph."""
    graph = tf.Graph()
    with graph.as_default(), graph._kernel_label_map({LSTM: kernel} if kernel else {}):
        feeds = {name: tf.compat.v1.placeholder(value.dtype) for name, value in inputs.items()}
        two = tf.compat.v1.placeholder(tf.float32)
        copies = {
            name: feed * tf.cast(two, feed.dtype) if name in cases.PEEPHOLES else feed
            for name, feed in feeds.items()
        }
        outputs = tf.raw_ops.LSTMBlockCellGrad(use_peephole=True, **copies)._asdict()
    with tf.compat.v1.Session(graph=graph) as session:
        fed = {feeds[name]: value for name, value in inputs.items()}
        return session.run(dict(outputs), {two: 2.0, **fed})


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_temporary_peephole_weights_are_read_before_anything_is_written(dtype):
    inputs = cases.grad_inputs(LSTM, 4, 3, 17, dtype=dtype, use_peephole=True)
    doubled = dict(inputs, **{name: inputs[name] * 2 for name in cases.PEEPHOLES})
    want = cases.expected(LSTM, doubled, use_peephole=True)
    limit = {np.float32: 1e-6, np.float16: 1e-3}[dtype]
    cases.assert_close(run_with_temporaries(kernels.OURS, inputs), want, limit)
    # What this guards against: stock clears the weights' buffer, which it reuses, before reading.
    stock = run_with_temporaries(kernels.STOCK, inputs)
    assert cases.scaled_error(stock["dicfo"], want["dicfo"]) > 1e-2
