"""Outputs of a sequence that nobody reads have no memory, or that of one step."""

import numpy as np
import pytest
import tensorflow as tf

from blockcell import op_table
from blockcell.op_table import (
    BLOCK_GRU,
    BLOCK_GRU_GRAD,
    BLOCK_LSTM,
    BLOCK_LSTM_GRAD,
    BLOCK_LSTM_GRAD_V2,
    BLOCK_LSTM_V2,
    LSTM,
    LSTM_GRAD,
)
from blockcell_tools.reference.inputs import inputs_of
from helpers import kernels

TF1 = tf.__version__.startswith("1.")
v1 = tf.compat.v1
# What is read in turn. The others are not.
READ = {
    BLOCK_LSTM: [["h"], ["cs"], ["h", "cs"], ["h", "i", "co"]],
    BLOCK_LSTM_V2: [["h"], ["f", "o", "ci"]],
    BLOCK_GRU: [["h"], ["h_last"], ["hc", "r"]],
    LSTM: [["h"], ["cs"], ["h", "co"]],
    BLOCK_LSTM_GRAD: [["w_grad", "b_grad"], ["x_grad"], ["h_prev_grad", "b_grad"]],
    BLOCK_LSTM_GRAD_V2: [["w_grad"], ["x_grad", "cs_prev_grad"]],
    LSTM_GRAD: [["w_grad"], ["x_grad", "b_grad"]],
    BLOCK_GRU_GRAD: [["w_ru_grad", "w_c_grad"], ["x_grad"], ["x_grad", "w_c_grad"], ["w_ru_grad"]],
}
NO_PEEPHOLES = dict.fromkeys([BLOCK_LSTM_GRAD, BLOCK_LSTM_GRAD_V2], {"use_peephole": False})
TYPES = ["float32", "float16", "bfloat16"][: 1 + len(op_table.OF_16_BITS)]
CASES = [(op, names) for op, all_names in READ.items() for names in all_names]


@pytest.mark.parametrize("dtype", [np.float32, *op_table.OF_16_BITS], ids=TYPES)
@pytest.mark.parametrize("time", [0, 1, 2, 7, 20])
@pytest.mark.parametrize("op, names", CASES, ids=["-".join([op] + n) for op, n in CASES])
def test_outputs_do_not_depend_on_who_reads_others(op, names, time, dtype):
    if dtype not in op_table.OPS[op].dtypes:
        pytest.skip("there is no kernel")
    values = inputs_of(op, 3, 5, 17, time=time, dtype=dtype, seed=3)
    with tf.Graph().as_default(), v1.Session() as session, kernels.labelled():
        feeds = {name: v1.placeholder(value.dtype, value.shape) for name, value in values.items()}
        feed = {feeds[name]: value for name, value in values.items()}
        outputs = kernels.call(op, feeds, **NO_PEEPHOLES.get(op, {}))
        want = session.run(outputs, feed)
        some = {name: outputs[name] for name in names}
        trace, options = v1.RunMetadata(), v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
        got = session.run(some, feed, options=options, run_metadata=trace)
    for name in names:
        np.testing.assert_array_equal(got[name], want[name])
    if TF1:  # It does not tell a kernel who reads its outputs.
        return
    nodes = [node for device in trace.step_stats.dev_stats for node in device.node_stats]
    slots = [{o.slot for o in node.output} for node in nodes if f" = {op}(" in node.timeline_label]
    assert slots == [{list(outputs).index(name) for name in names}]
