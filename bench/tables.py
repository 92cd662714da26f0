"""The kernels and the ops that are measured, as `docs/ops.md` defines them."""

from bench.ops import NEVER, PEEPHOLE, Case, Kernel, Op, Tensor

_ROW = ("batch", "cell")


def _over_time(*tensors):
    """The same tensors, with a first dimension of time."""
    return tuple(tensor._replace(shape=("time", *tensor.shape)) for tensor in tensors)


def _unread(*tensors):
    """The same tensors, of whose values a kernel uses none."""
    return tuple(tensor._replace(read=NEVER) for tensor in tensors)


def _gradients(*tensors):
    """The gradients of tensors, named after them."""
    return tuple(Tensor(tensor.name + "_grad", tensor.shape) for tensor in tensors)


_X = Tensor("x", ("batch", "input"), "state")
_H_PREV = Tensor("h_prev", _ROW, "state")
_CS_PREV = Tensor("cs_prev", _ROW, "state")

_W_RU = Tensor("w_ru", ("input + cell", "2 cell"), "weight")
_W_C = Tensor("w_c", ("input + cell", "cell"), "weight")
_B_RU = Tensor("b_ru", ("2 cell",), "state")
_B_C = Tensor("b_c", ("cell",), "state")
_B_HC = Tensor("b_hc", ("cell",), "state")
_R, _U = (Tensor(name, _ROW, "gate") for name in "ru")
_C, _HC, _H = (Tensor(name, _ROW, "state") for name in ("c", "hc", "h"))

_W = Tensor("w", ("input + cell", "4 cell"), "weight")
_PEEPHOLES = tuple(Tensor(n, ("cell",), "weight", read=PEEPHOLE) for n in ("wci", "wcf", "wco"))
_B = Tensor("b", ("4 cell",), "state")
_I, _F, _O = (Tensor(name, _ROW, "gate") for name in "ifo")
_CS, _CI, _CO = (Tensor(name, _ROW, "state") for name in ("cs", "ci", "co"))
_LSTM_OUTPUTS = (_I, _CS, _F, _O, _CI, _CO, _H)
_SEQ_LEN_MAX = Tensor("seq_len_max", (), "length")
_SEQUENCE_LENGTH = Tensor("sequence_length", ("batch",), "length")

_FORWARD = ("forget_bias", "cell_clip", "use_peephole")

GRU_BLOCK_CELL = Kernel(
    name="GRUBlockCell",
    inputs=(_X, _H_PREV, _W_RU, _W_C, _B_RU, _B_C),
    outputs=(_R, _U, _C, _H),
    products=(("batch", "2 cell", "input + cell"), ("batch", "cell", "input + cell")),
    dtypes=("float32",),
)

GRU_BLOCK_CELL_GRAD = Kernel(
    name="GRUBlockCellGrad",
    inputs=(
        *_unread(_X),
        *(_H_PREV, _W_RU, _W_C),
        *_unread(_B_RU, _B_C),
        *(_R, _U, _C),
        Tensor("d_h", _ROW),
    ),
    outputs=(
        Tensor("d_x", ("batch", "input")),
        Tensor("d_h_prev", _ROW),
        Tensor("d_c_bar", _ROW),
        Tensor("d_r_bar_u_bar", ("batch", "2 cell")),
    ),
    products=(("batch", "input + cell", "cell"), ("batch", "input + cell", "2 cell")),
    dtypes=("float32",),
)

LSTM_BLOCK_CELL = Kernel(
    name="LSTMBlockCell",
    inputs=(_X, _CS_PREV, _H_PREV, _W, *_PEEPHOLES, _B),
    outputs=_LSTM_OUTPUTS,
    products=(("batch", "4 cell", "input + cell"),),
    attributes=_FORWARD,
)

LSTM_BLOCK_CELL_GRAD = Kernel(
    name="LSTMBlockCellGrad",
    inputs=(
        *_unread(_X),
        _CS_PREV,
        *_unread(_H_PREV, _W),
        *_PEEPHOLES,
        *_unread(_B),
        _I,
        _CS._replace(read=PEEPHOLE),
        *(_F, _O, _CI, _CO),
        *_gradients(_CS, _H),
    ),
    outputs=(
        *_gradients(_CS_PREV),
        Tensor("dicfo", ("batch", "4 cell")),
        *_gradients(*_PEEPHOLES),
    ),
    products=(),
    attributes=("use_peephole",),
)

_BLOCK_LSTM_INPUTS = (_SEQ_LEN_MAX, *_over_time(_X), _CS_PREV, _H_PREV, _W, *_PEEPHOLES, _B)

BLOCK_LSTM = Kernel(
    name="BlockLSTM",
    inputs=_BLOCK_LSTM_INPUTS,
    outputs=_over_time(*_LSTM_OUTPUTS),
    products=(("rows", "4 cell", "input + cell"),),
    attributes=_FORWARD,
)

BLOCK_LSTM_GRAD = Kernel(
    name="BlockLSTMGrad",
    inputs=(
        *_BLOCK_LSTM_INPUTS[:-1],
        *_unread(_B),
        *_over_time(*_LSTM_OUTPUTS),
        *_over_time(*_gradients(_CS, _H)),
    ),
    outputs=(
        *_over_time(*_gradients(_X)),
        *_gradients(_CS_PREV, _H_PREV, _W, *_PEEPHOLES, _B),
    ),
    products=(("rows", "input + cell", "4 cell"), ("input + cell", "4 cell", "rows")),
    attributes=("use_peephole",),
)

BLOCK_LSTM_V2 = BLOCK_LSTM._replace(name="BlockLSTMV2", attributes=("cell_clip", "use_peephole"))
BLOCK_LSTM_GRAD_V2 = BLOCK_LSTM_GRAD._replace(name="BlockLSTMGradV2")

_BLOCK_GRU_INPUTS = (_SEQUENCE_LENGTH, *_over_time(_X), _H_PREV, _W_RU, _W_C)
_BLOCK_GRU_SAVED = _over_time(_R, _U, _C, _HC, _H)

BLOCK_GRU = Kernel(
    name="BlockGRU",
    inputs=(*_BLOCK_GRU_INPUTS, _B_RU, _B_C, _B_HC),
    outputs=(*_BLOCK_GRU_SAVED, Tensor("h_last", _ROW)),
    products=(("rows", "2 cell", "input + cell"), ("rows", "cell", "input + cell")),
    attributes=("reset_after",),
)

BLOCK_GRU_GRAD = Kernel(
    name="BlockGRUGrad",
    inputs=(
        *_BLOCK_GRU_INPUTS,
        *_unread(_B_RU, _B_C, _B_HC),
        *_BLOCK_GRU_SAVED,
        *_over_time(*_gradients(_H)),
        Tensor("h_last_grad", _ROW),
    ),
    outputs=(
        *_over_time(*_gradients(_X)),
        *_gradients(_H_PREV, _W_RU, _W_C, _B_RU, _B_C, _B_HC),
    ),
    products=(
        *(("rows", "input + cell", "2 cell"), ("input + cell", "2 cell", "rows")),
        *(("rows", "input + cell", "cell"), ("input + cell", "cell", "rows")),
    ),
    attributes=("reset_after",),
)

OPS = {
    op.name: op
    for op in (
        Op("GRUBlockCell", (GRU_BLOCK_CELL,)),
        Op("GRUBlockCellGrad", (GRU_BLOCK_CELL_GRAD,)),
        Op("LSTMBlockCell", (LSTM_BLOCK_CELL,)),
        Op("LSTMBlockCellGrad", (LSTM_BLOCK_CELL_GRAD,)),
        Op("BlockLSTM", (BLOCK_LSTM,)),
        Op("BlockLSTM+Grad", (BLOCK_LSTM, BLOCK_LSTM_GRAD)),
        Op("BlockLSTMV2", (BLOCK_LSTM_V2,)),
        Op("BlockLSTMV2+Grad", (BLOCK_LSTM_V2, BLOCK_LSTM_GRAD_V2)),
        Op("BlockLSTMGrad", (BLOCK_LSTM_GRAD,)),
        Op("BlockLSTMGradV2", (BLOCK_LSTM_GRAD_V2,)),
    )
}
"""The ops that TensorFlow has kernels for, by name."""

USUAL_OPS = tuple(name for name in OPS if name not in ("BlockLSTMGrad", "BlockLSTMGradV2"))
"""Those measured unless told otherwise: backward passes of sequences come with the forward one."""

BLOCK_GRU_OPS = {
    op.name: op
    for op in (Op("BlockGRU", (BLOCK_GRU,)), Op("BlockGRU+Grad", (BLOCK_GRU, BLOCK_GRU_GRAD)))
}
"""The ops that are the library's alone, by name; nothing in TensorFlow to compare them with."""


def encode(case):
    """A case as plain JSON."""
    return [case.op.name, *case[1:]]


def decode(fields):
    """The case that `encode` put into JSON."""
    return Case(OPS[fields[0]], *fields[1:])
