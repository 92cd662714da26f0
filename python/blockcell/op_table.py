"""Every op of a cell or a sequence: its tensors with shapes in symbols, its types and attributes.

Names and order are those of `tf.raw_ops`; `docs/ops.md` defines the ops. A symbolic dimension is a
sum of products such as `"input_size + cell_size"` or `"2 * cell_size"`; `size_of` evaluates it.
"""

from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

# The names of the ops.
GRU_CELL, GRU_CELL_GRAD = "GRUBlockCell", "GRUBlockCellGrad"
LSTM_CELL, LSTM_CELL_GRAD = "LSTMBlockCell", "LSTMBlockCellGrad"
BLOCK_LSTM, BLOCK_LSTM_GRAD = "BlockLSTM", "BlockLSTMGrad"
BLOCK_LSTM_V2, BLOCK_LSTM_GRAD_V2 = "BlockLSTMV2", "BlockLSTMGradV2"
BLOCK_GRU, BLOCK_GRU_GRAD = "BlockGRU", "BlockGRUGrad"

# TensorFlow's ops for cuDNN, which are not in the table: their attributes choose their shapes.
CUDNN = (
    *("CudnnRNN", "CudnnRNNV2", "CudnnRNNV3"),
    *("CudnnRNNBackprop", "CudnnRNNBackpropV2", "CudnnRNNBackpropV3"),
    *("CudnnRNNParamsSize", "CudnnRNNParamsToCanonical", "CudnnRNNParamsToCanonicalV2"),
    *("CudnnRNNCanonicalToParams", "CudnnRNNCanonicalToParamsV2"),
)

# What a tensor is.
LENGTH, GATE, STATE, WEIGHT, GRADIENT = "length", "gate", "state", "weight", "gradient"

# When an op reads the values of an input: always, never, or with the attribute of this name.
ALWAYS, NEVER = "always", "never"
USE_PEEPHOLE, RESET_AFTER = "use_peephole", "reset_after"

Shape = Tuple[str, ...]
Attributes = Mapping[str, Any]
Variant = Tuple[str, type, Dict[str, bool]]


class Tensor(NamedTuple):
    """An input or output of an op."""

    name: str
    shape: Shape
    kind: str
    """LENGTH (int64), GATE (0 to 1), STATE, WEIGHT or GRADIENT."""
    read: str = ALWAYS
    """When the op reads the values of this input: ALWAYS, NEVER or the name of a switch."""


class OpDef(NamedTuple):
    """The declaration of an op."""

    name: str
    inputs: Dict[str, Tensor]
    """By name, in the op's order; so are the outputs."""
    outputs: Dict[str, Tensor]
    products: Tuple[Tuple[str, str, str], ...]
    """Rows, columns and inner size of the matrix products that the op cannot do without."""
    attributes: Tuple[str, ...] = ()
    """Names of the attributes, but for the element type."""
    half: bool = True
    """Whether there is a kernel for float16 beside the one for float32."""
    forward: Optional[str] = None
    """The op whose gradient it is."""
    function: Optional[str] = None
    """What the library's module calls an op that TensorFlow does not have."""

    @property
    def switch(self) -> Optional[str]:
        """The boolean attribute that selects between two sets of equations."""
        names = (name for name in self.attributes if name in _VECTORS_OF_SWITCH)
        return next(names, None)

    @property
    def dtypes(self) -> Tuple[type, ...]:
        """The element types that the op has kernels for."""
        return (np.float32, np.float16) if self.half else (np.float32,)

    @property
    def is_sequence(self) -> bool:
        """Whether the op loops over time."""
        return "time" in self.inputs["x"].shape

    @property
    def length(self) -> Optional[str]:
        """The input that says how many steps take part."""
        names = (name for name in self.inputs if name in LENGTHS)
        return next(names, None)


PEEPHOLES = ("wci", "wcf", "wco")
LENGTHS = ("seq_len_max", "sequence_length")
"""Inputs of type int64, whatever the element type of the op."""

# Vectors that take part with this switch only. Without it they may be of any length.
_VECTORS_OF_SWITCH = {USE_PEEPHOLE: PEEPHOLES, RESET_AFTER: ("b_hc",)}

_ROW, _VECTOR = ("batch", "cell_size"), ("cell_size",)
_ROWS_OF_WEIGHTS = "input_size + cell_size"  # Those of x first.
_STEPS = "time * batch"


def _tensors(kind: str, shape: Shape, *names: str) -> Tuple[Tensor, ...]:
    return tuple(Tensor(name, shape, kind) for name in names)


def _over_time(tensors: Iterable[Tensor]) -> Tuple[Tensor, ...]:
    """The same tensors with time as their first dimension."""
    return tuple(tensor._replace(shape=("time",) + tensor.shape) for tensor in tensors)


def _read(when: str, tensors: Iterable[Tensor]) -> Tuple[Tensor, ...]:
    return tuple(tensor._replace(read=when) for tensor in tensors)


def _gradients(tensors: Iterable[Tensor]) -> Tuple[Tensor, ...]:
    """The gradients with respect to tensors, named after them."""
    return tuple(Tensor(each.name + "_grad", each.shape, GRADIENT) for each in tensors)


def _named(*groups: Iterable[Tensor]) -> Dict[str, Tensor]:
    return {tensor.name: tensor for group in groups for tensor in group}


_X = _tensors(STATE, ("batch", "input_size"), "x")
_H_PREV = _tensors(STATE, _ROW, "h_prev")
_CS_PREV = _tensors(STATE, _ROW, "cs_prev")

_GRU_WEIGHTS = (
    Tensor("w_ru", (_ROWS_OF_WEIGHTS, "2 * cell_size"), WEIGHT),
    Tensor("w_c", (_ROWS_OF_WEIGHTS, "cell_size"), WEIGHT),
)
_GRU_BIASES = (Tensor("b_ru", ("2 * cell_size",), STATE), Tensor("b_c", _VECTOR, STATE))
_B_HC = (Tensor("b_hc", _VECTOR, STATE, RESET_AFTER),)
_RU, _C, _HC = (
    _tensors(GATE, _ROW, "r", "u"),
    _tensors(STATE, _ROW, "c"),
    _tensors(STATE, _ROW, "hc"),
)
_H, _H_LAST = _tensors(STATE, _ROW, "h"), _tensors(STATE, _ROW, "h_last")

_W = (Tensor("w", (_ROWS_OF_WEIGHTS, "4 * cell_size"), WEIGHT),)
_PEEPHOLES = _read(USE_PEEPHOLE, _tensors(WEIGHT, _VECTOR, *PEEPHOLES))
_B = (Tensor("b", ("4 * cell_size",), STATE),)
_I, _CS = _tensors(GATE, _ROW, "i"), _tensors(STATE, _ROW, "cs")
_F_O, _CI_CO = _tensors(GATE, _ROW, "f", "o"), _tensors(STATE, _ROW, "ci", "co")
_LSTM_STEP = _I + _CS + _F_O + _CI_CO
_SEQ_LEN_MAX = (Tensor("seq_len_max", (), LENGTH),)
_SEQUENCE_LENGTH = (Tensor("sequence_length", ("batch",), LENGTH),)

_GRU_CELL = OpDef(
    GRU_CELL,
    inputs=_named(_X, _H_PREV, _GRU_WEIGHTS, _GRU_BIASES),
    outputs=_named(_RU, _C, _H),
    products=(
        ("batch", "2 * cell_size", _ROWS_OF_WEIGHTS),
        ("batch", "cell_size", _ROWS_OF_WEIGHTS),
    ),
    half=False,
)

_GRU_CELL_GRAD = OpDef(
    GRU_CELL_GRAD,
    inputs=_named(
        _read(NEVER, _X),
        _H_PREV + _GRU_WEIGHTS,
        _read(NEVER, _GRU_BIASES),
        _RU + _C,
        _tensors(GRADIENT, _ROW, "d_h"),
    ),
    outputs=_named(
        _tensors(GRADIENT, ("batch", "input_size"), "d_x"),
        _tensors(GRADIENT, _ROW, "d_h_prev", "d_c_bar"),
        _tensors(GRADIENT, ("batch", "2 * cell_size"), "d_r_bar_u_bar"),
    ),
    products=(
        ("batch", _ROWS_OF_WEIGHTS, "cell_size"),
        ("batch", _ROWS_OF_WEIGHTS, "2 * cell_size"),
    ),
    half=False,
    forward=GRU_CELL,
)

_LSTM_CELL = OpDef(
    LSTM_CELL,
    inputs=_named(_X, _CS_PREV, _H_PREV, _W, _PEEPHOLES, _B),
    outputs=_named(_LSTM_STEP, _H),
    products=(("batch", "4 * cell_size", _ROWS_OF_WEIGHTS),),
    attributes=("forget_bias", "cell_clip", USE_PEEPHOLE),
)

_LSTM_CELL_GRAD = OpDef(
    LSTM_CELL_GRAD,
    inputs=_named(
        _read(NEVER, _X),
        _CS_PREV,
        _read(NEVER, _H_PREV + _W),
        _PEEPHOLES,
        _read(NEVER, _B),
        _I,
        _read(USE_PEEPHOLE, _CS),
        _F_O + _CI_CO,
        _gradients(_CS + _H),
    ),
    outputs=_named(
        _gradients(_CS_PREV),
        _tensors(GRADIENT, ("batch", "4 * cell_size"), "dicfo"),
        _gradients(_PEEPHOLES),
    ),
    products=(),
    attributes=(USE_PEEPHOLE,),
    forward=LSTM_CELL,
)

_BLOCK_LSTM_INPUTS = _SEQ_LEN_MAX + _over_time(_X) + _CS_PREV + _H_PREV + _W + _PEEPHOLES

_BLOCK_LSTM = OpDef(
    BLOCK_LSTM,
    inputs=_named(_BLOCK_LSTM_INPUTS, _B),
    outputs=_named(_over_time(_LSTM_STEP + _H)),
    products=((_STEPS, "4 * cell_size", _ROWS_OF_WEIGHTS),),
    attributes=("forget_bias", "cell_clip", USE_PEEPHOLE),
)

_BLOCK_LSTM_GRAD = OpDef(
    BLOCK_LSTM_GRAD,
    inputs=_named(
        _BLOCK_LSTM_INPUTS,
        _read(NEVER, _B),
        _over_time(_LSTM_STEP + _H),
        _over_time(_gradients(_CS + _H)),
    ),
    outputs=_named(
        _over_time(_gradients(_X)), _gradients(_CS_PREV + _H_PREV + _W + _PEEPHOLES + _B)
    ),
    products=(
        (_STEPS, _ROWS_OF_WEIGHTS, "4 * cell_size"),
        (_ROWS_OF_WEIGHTS, "4 * cell_size", _STEPS),
    ),
    attributes=(USE_PEEPHOLE,),
    forward=BLOCK_LSTM,
)

_BLOCK_LSTM_V2 = _BLOCK_LSTM._replace(name=BLOCK_LSTM_V2, attributes=("cell_clip", USE_PEEPHOLE))
_BLOCK_LSTM_GRAD_V2 = _BLOCK_LSTM_GRAD._replace(name=BLOCK_LSTM_GRAD_V2, forward=BLOCK_LSTM_V2)

_BLOCK_GRU_INPUTS = _SEQUENCE_LENGTH + _over_time(_X) + _H_PREV + _GRU_WEIGHTS
_BLOCK_GRU_STEPS = _over_time(_RU + _C + _HC + _H)

_BLOCK_GRU = OpDef(
    BLOCK_GRU,
    inputs=_named(_BLOCK_GRU_INPUTS, _GRU_BIASES, _B_HC),
    outputs=_named(_BLOCK_GRU_STEPS, _H_LAST),
    products=(
        (_STEPS, "2 * cell_size", _ROWS_OF_WEIGHTS),
        (_STEPS, "cell_size", _ROWS_OF_WEIGHTS),
    ),
    attributes=(RESET_AFTER,),
    function="block_gru",
)

_BLOCK_GRU_GRAD = OpDef(
    BLOCK_GRU_GRAD,
    inputs=_named(
        _BLOCK_GRU_INPUTS,
        _read(NEVER, _GRU_BIASES + _B_HC),
        _BLOCK_GRU_STEPS,
        _over_time(_gradients(_H)),
        _gradients(_H_LAST),
    ),
    outputs=_named(
        _over_time(_gradients(_X)), _gradients(_H_PREV + _GRU_WEIGHTS + _GRU_BIASES + _B_HC)
    ),
    products=(
        (_STEPS, _ROWS_OF_WEIGHTS, "2 * cell_size"),
        (_ROWS_OF_WEIGHTS, "2 * cell_size", _STEPS),
        (_STEPS, _ROWS_OF_WEIGHTS, "cell_size"),
        (_ROWS_OF_WEIGHTS, "cell_size", _STEPS),
    ),
    attributes=(RESET_AFTER,),
    forward=BLOCK_GRU,
    function="block_gru_grad",
)

OPS: Dict[str, OpDef] = {
    op.name: op
    for op in (
        *(_GRU_CELL, _GRU_CELL_GRAD),
        *(_LSTM_CELL, _LSTM_CELL_GRAD),
        *(_BLOCK_LSTM, _BLOCK_LSTM_V2, _BLOCK_LSTM_GRAD, _BLOCK_LSTM_GRAD_V2),
        *(_BLOCK_GRU, _BLOCK_GRU_GRAD),
    )
}
"""All ops by name."""

STOCK = tuple(name for name, op in OPS.items() if op.function is None)
"""The ops that TensorFlow has kernels for."""
OWN = tuple(name for name, op in OPS.items() if op.function is not None)
"""The ops that the library defines."""
SEQUENCES = tuple(name for name, op in OPS.items() if op.is_sequence)
GRADIENTS = tuple(name for name, op in OPS.items() if op.forward)
FORWARD = tuple(name for name, op in OPS.items() if not op.forward)
CLIPPING = tuple(name for name, op in OPS.items() if "cell_clip" in op.attributes)
GRADIENT_OF: Dict[str, str] = {OPS[name].forward or "": name for name in GRADIENTS}
"""The gradient op of each forward op."""


def size_of(dimension: str, sizes: Mapping[str, int]) -> int:
    """The number that a symbolic dimension stands for.

    Args:
      dimension: Such as `"input_size + cell_size"`.
      sizes: The numbers of its symbols.

    Raises:
      KeyError: A symbol has no number.
    """
    total = 0
    for term in dimension.split(" + "):
        product = 1
        for factor in term.split(" * "):
            product *= int(factor) if factor.isdigit() else sizes[factor]
        total += product
    return total


def in_numbers(tensors: Mapping[str, Tensor], sizes: Mapping[str, int]) -> Dict[str, List[int]]:
    """The shapes of tensors in numbers, by name."""
    return {
        name: [size_of(dimension, sizes) for dimension in tensor.shape]
        for name, tensor in tensors.items()
    }


def switches(op: str) -> List[Dict[str, bool]]:
    """The attributes for each set of equations that an op has: one or two dictionaries."""
    switch = OPS[op].switch
    return [{}] if switch is None else [{switch: False}, {switch: True}]


def variants(ops: Sequence[str] = tuple(OPS)) -> List[Variant]:
    """All of (op, element type, attributes)."""
    return [(op, dtype, on) for op in ops for dtype in OPS[op].dtypes for on in switches(op)]


def any_length(op: str, attributes: Attributes) -> Tuple[str, ...]:
    """Names of the vectors that these attributes give no use, and that may have any length."""
    switch = OPS[op].switch
    return () if switch is None or attributes[switch] else _VECTORS_OF_SWITCH[switch]


def reads(tensor: Tensor, attributes: Attributes) -> bool:
    """Whether an op with these attributes reads the values of this input."""
    return tensor.read == ALWAYS or bool(attributes.get(tensor.read))


def unread(op: str, attributes: Attributes) -> Tuple[str, ...]:
    """Names of the inputs whose values do not matter under these attributes."""
    inputs = OPS[op].inputs
    return tuple(name for name, tensor in inputs.items() if not reads(tensor, attributes))


def incoming(op: str) -> Dict[str, str]:
    """Of a gradient op: its inputs that are gradients, each with the output it belongs to.

    `{"cs_grad": "cs", "h_grad": "h"}` of the LSTMs. A loss that depends on these outputs only is
    what the gradient op is for.
    """
    inputs = OPS[op].inputs.values()
    names = [tensor.name for tensor in inputs if tensor.kind == GRADIENT]
    return {name: name[2:] if name.startswith("d_") else name[: -len("_grad")] for name in names}
