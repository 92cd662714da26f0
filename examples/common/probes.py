"""Which kernel runs an op: found out by a call that every kernel refuses, each in its own words."""

import json

_GRU = {"x": (1, 1), "h_prev": (1, 1), "w_ru": (2, 2), "w_c": (2, 1), "b_ru": (2,), "b_c": (1,)}
_STATE = {"cs_prev": (1, 1), "h_prev": (1, 1)}
_LSTM = {"w": (2, 4), "wci": (1,), "wcf": (1,), "wco": (1,), "b": (4,)}
_GATES = ("i", "cs", "f", "o", "ci", "co")
_SEQUENCE = {"seq_len_max": (), "x": (1, 1, 1), **_STATE, **_LSTM, "w": (3, 4)}
_SEQUENCE_GRAD = {
    **_SEQUENCE,
    **dict.fromkeys((*_GATES, "h", "cs_grad", "h_grad"), (1, 1, 1)),
}

SHAPES = {
    "GRUBlockCell": {**_GRU, "w_c": (2, 2)},
    "GRUBlockCellGrad": {**_GRU, "r": (1, 2), "u": (1, 1), "c": (1, 1), "d_h": (1, 1)},
    "LSTMBlockCell": {"x": (1, 1), **_STATE, **_LSTM, "w": (2, 5)},
    "LSTMBlockCellGrad": {
        "x": (1, 1),
        **_STATE,
        **_LSTM,
        **dict.fromkeys((*_GATES, "cs_grad", "h_grad"), (1, 1)),
        "i": (1, 2),
    },
    "BlockLSTM": _SEQUENCE,
    "BlockLSTMV2": _SEQUENCE,
    "BlockLSTMGrad": _SEQUENCE_GRAD,
    "BlockLSTMGradV2": _SEQUENCE_GRAD,
}
"""Shapes of the calls, by op of TensorFlow and tensor: one tensor of each is too large."""


def refusal(tf, session_of, op, label=None):
    """Returns the words in which a kernel refuses its call of `SHAPES`.

    Args:
      tf: TensorFlow.
      session_of: A function that returns a session for the default graph.
      op: Type of the op.
      label: Label of the kernel; None is how the nodes of training graphs are.
    """
    attributes = {"use_peephole": True} if "LSTM" in op else {}
    with tf.Graph().as_default() as graph, session_of(tf) as session:
        tensors = {
            name: tf.zeros(shape, tf.int64 if name == "seq_len_max" else tf.float32)
            for name, shape in SHAPES[op].items()
        }
        with graph._kernel_label_map({op: label} if label else {}):
            outputs = getattr(tf.raw_ops, op)(**tensors, **attributes)
        try:
            session.run(outputs)
        except tf.errors.InvalidArgumentError as error:
            # Around the kernel's own line TensorFlow says where the node comes from.
            return error.message.split("\n\t [[")[0].splitlines()[-1]
    raise RuntimeError(f"{op} did not refuse a malformed call")


def wrong_kernels(stock, ours, stock_ops, our_ops):
    """Yields a line for each op that did not run on the kernel it should have run on.

    Args:
      stock: The `sessions.Ready` of the process that trains on TensorFlow's kernels.
      ours: That of the process that trains on the library's.
      stock_ops: Types of the block RNN ops of the first.
      our_ops: Types of the block RNN ops of the second.
    """
    info = json.loads(ours.info)
    for op in our_ops:
        if op not in ours.refusals:  # an op of the library's own
            if op not in info["ops"] and op not in info["rewritten"]:
                yield f"the library has no {op}: {ours.info}"
            continue
        if op not in info["taken_over"]:
            yield f"the library has not taken over {op}: {ours.info}"
        if ours.refusals[op] != ours.labelled_refusals[op]:
            yield f"{op} did not run on the library's kernel: {ours.refusals[op]!r}"
    for op in stock_ops:
        if op in stock.refusals and stock.refusals[op] == ours.labelled_refusals[op]:
            yield f"{op} ran on the library's kernel in both: {stock.refusals[op]!r}"
