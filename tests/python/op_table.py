"""Every op there is: its inputs and outputs with their shapes in symbols, types and attributes."""

import collections

import numpy as np

import oracle

# The names of the ops.
GRU_CELL, GRU = "GRUBlockCell", "GRUBlockCellGrad"
LSTM_CELL, LSTM = "LSTMBlockCell", "LSTMBlockCellGrad"
BLOCK_LSTM, BLOCK_LSTM_GRAD = "BlockLSTM", "BlockLSTMGrad"
BLOCK_LSTM_V2, BLOCK_LSTM_GRAD_V2 = "BlockLSTMV2", "BlockLSTMGradV2"
BLOCK_GRU, BLOCK_GRU_GRAD = "BlockGRU", "BlockGRUGrad"

Op = collections.namedtuple("Op", "inputs outputs half switch oracle forward")
Op.__doc__ = """An op.

  inputs, outputs: Dictionaries from each tensor's name to its symbolic shape, in the op's order.
  half: Whether there is a kernel for half, beside the one for float.
  switch: The boolean attribute that selects between two sets of equations, or None.
  oracle: The function of the oracle that computes it.
  forward: The op whose gradient it is, or None.
"""

STEP, VECTOR = ("batch", "cell_size"), ("cell_size",)
STEPS = ("time",) + STEP
ROWS = "input_size + cell_size"  # Of weight matrices: those of x first.
PEEPHOLES = ("wci", "wcf", "wco")


def _x(steps):
    return {"x": steps + ("batch", "input_size")}


def _gru(steps=()):
    return {
        **_x(steps),
        "h_prev": STEP,
        "w_ru": (ROWS, "2 * cell_size"),
        "w_c": (ROWS, "cell_size"),
        "b_ru": ("2 * cell_size",),
        "b_c": VECTOR,
    }


def _lstm(steps=()):
    return {
        **_x(steps),
        "cs_prev": STEP,
        "h_prev": STEP,
        "w": (ROWS, "4 * cell_size"),
        **dict.fromkeys(PEEPHOLES, VECTOR),
        "b": ("4 * cell_size",),
    }


def _gradients(tensors):
    return {name + "_grad": dims for name, dims in tensors.items()}


LSTM_STEP = ("i", "cs", "f", "o", "ci", "co")
_LSTM_STEPS = dict.fromkeys(LSTM_STEP + ("h",), STEPS)
_LSTM_SEQUENCE = {"seq_len_max": (), **_lstm(("time",))}
_GRU_SEQUENCE = {**_gru(("time",)), "b_hc": VECTOR}
_GRU_STEPS = dict.fromkeys(("r", "u", "c", "hc", "h"), STEPS)
_LENGTHS = {"sequence_length": ("batch",)}


def _sequence_of_lstm(function):
    return Op(_LSTM_SEQUENCE, _LSTM_STEPS, True, "use_peephole", function, None)


def _gradient_of_lstm_sequence(function, forward):
    inputs = {**_LSTM_SEQUENCE, **_LSTM_STEPS, "cs_grad": STEPS, "h_grad": STEPS}
    outputs = _gradients(_lstm(("time",)))
    return Op(inputs, outputs, True, "use_peephole", function, forward)


OPS = {
    GRU_CELL: Op(
        inputs=_gru(),
        outputs=dict.fromkeys(("r", "u", "c", "h"), STEP),
        half=False,
        switch=None,
        oracle=oracle.gru_block_cell,
        forward=None,
    ),
    GRU: Op(
        inputs={**_gru(), **dict.fromkeys(("r", "u", "c", "d_h"), STEP)},
        outputs={
            "d_x": ("batch", "input_size"),
            "d_h_prev": STEP,
            "d_c_bar": STEP,
            "d_r_bar_u_bar": ("batch", "2 * cell_size"),
        },
        half=False,
        switch=None,
        oracle=oracle.gru_block_cell_grad,
        forward=GRU_CELL,
    ),
    LSTM_CELL: Op(
        inputs=_lstm(),
        outputs=dict.fromkeys(LSTM_STEP + ("h",), STEP),
        half=True,
        switch="use_peephole",
        oracle=oracle.lstm_block_cell,
        forward=None,
    ),
    LSTM: Op(
        inputs={**_lstm(), **dict.fromkeys(LSTM_STEP + ("cs_grad", "h_grad"), STEP)},
        outputs={
            "cs_prev_grad": STEP,
            "dicfo": ("batch", "4 * cell_size"),
            **_gradients(dict.fromkeys(PEEPHOLES, VECTOR)),
        },
        half=True,
        switch="use_peephole",
        oracle=oracle.lstm_block_cell_grad,
        forward=LSTM_CELL,
    ),
    BLOCK_LSTM: _sequence_of_lstm(oracle.block_lstm),
    BLOCK_LSTM_V2: _sequence_of_lstm(oracle.block_lstm_v2),
    BLOCK_LSTM_GRAD: _gradient_of_lstm_sequence(oracle.block_lstm_grad, BLOCK_LSTM),
    BLOCK_LSTM_GRAD_V2: _gradient_of_lstm_sequence(oracle.block_lstm_grad_v2, BLOCK_LSTM_V2),
    BLOCK_GRU: Op(
        inputs={**_LENGTHS, **_GRU_SEQUENCE},
        outputs={**_GRU_STEPS, "h_last": STEP},
        half=True,
        switch="reset_after",
        oracle=oracle.block_gru,
        forward=None,
    ),
    BLOCK_GRU_GRAD: Op(
        inputs={**_LENGTHS, **_GRU_SEQUENCE, **_GRU_STEPS, "h_grad": STEPS, "h_last_grad": STEP},
        outputs=_gradients(_GRU_SEQUENCE),
        half=True,
        switch="reset_after",
        oracle=oracle.block_gru_grad,
        forward=BLOCK_GRU,
    ),
}

# Ops that TensorFlow does not have, and their names in the library's module.
NEW = {BLOCK_GRU: "block_gru", BLOCK_GRU_GRAD: "block_gru_grad"}
STOCK = tuple(op for op in OPS if op not in NEW)
SEQUENCES = tuple(op for op in OPS if "time" in OPS[op].inputs["x"])
GRADIENTS = tuple(op for op in OPS if OPS[op].forward)
CLIPPING = (LSTM_CELL, BLOCK_LSTM, BLOCK_LSTM_V2)  # Those with the attribute cell_clip.
LENGTHS = ("seq_len_max", "sequence_length")  # int64, whatever the type of the op.


def switches(op):
    """The attributes for each set of equations that an op has: one or two dictionaries."""
    switch = OPS[op].switch
    return [{}] if switch is None else [{switch: False}, {switch: True}]


def types(op):
    """The element types that an op has kernels for."""
    return (np.float32, np.float16) if OPS[op].half else (np.float32,)


def variants(ops=tuple(OPS)):
    """All of (op, element type, attributes)."""
    return [(op, dtype, on) for op in ops for dtype in types(op) for on in switches(op)]


def any_length(op, attributes):
    """Names of the vectors that these attributes give no use, and that may have any length."""
    if OPS[op].switch == "use_peephole" and not attributes["use_peephole"]:
        return PEEPHOLES
    if OPS[op].switch == "reset_after" and not attributes["reset_after"]:
        return ("b_hc",)
    return ()


_UNREAD = {
    GRU: ("x", "b_ru", "b_c"),
    LSTM: ("x", "h_prev", "w", "b"),
    BLOCK_LSTM_GRAD: ("b",),
    BLOCK_LSTM_GRAD_V2: ("b",),
    BLOCK_GRU_GRAD: ("b_ru", "b_c", "b_hc"),
}


def unread(op, attributes):
    """Names of the inputs whose values do not matter under these attributes."""
    names = list(_UNREAD.get(op, ()))
    if op == LSTM and not attributes["use_peephole"]:
        names.append("cs")
    names += [name for name in any_length(op, attributes) if name not in names]
    return tuple(names)
