"""Every op of a cell or a sequence: its tensors with shapes in symbols, its types and attributes.

The declarations are those of the library, in `kernels/src/ops`; `make generated` writes `ops.json`.
Names and order are those of `tf.raw_ops`; `docs/ops.md` defines the ops. A symbolic dimension is a
sum of products such as `"input_size + cell_size"` or `"2 * cell_size"`; `size_of` evaluates it.
"""

import json
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

try:
    # A type of NumPy's in TensorFlow 2.14 and later. That of older releases lacks much of NumPy.
    import ml_dtypes
except ImportError:
    BFLOAT16: Optional[type] = None
else:
    BFLOAT16 = ml_dtypes.bfloat16

_NUMPY: Dict[str, type] = {"float": np.float32, "half": np.float16}
if BFLOAT16 is not None:
    _NUMPY["bfloat16"] = BFLOAT16

OF_16_BITS: Tuple[type, ...] = tuple(_NUMPY.values())[1:]
"""The element types of 16 bits that NumPy has."""


def finfo(dtype: Any) -> Any:
    """NumPy's `finfo` of a type, which may be bfloat16."""
    return np.finfo(dtype) if BFLOAT16 is None else ml_dtypes.finfo(dtype)


# The names of the ops.
GRU_CELL, GRU_CELL_GRAD = "GRUBlockCell", "GRUBlockCellGrad"
LSTM_CELL, LSTM_CELL_GRAD = "LSTMBlockCell", "LSTMBlockCellGrad"
BLOCK_LSTM, BLOCK_LSTM_GRAD = "BlockLSTM", "BlockLSTMGrad"
BLOCK_LSTM_V2, BLOCK_LSTM_GRAD_V2 = "BlockLSTMV2", "BlockLSTMGradV2"
BLOCK_GRU, BLOCK_GRU_GRAD = "BlockGRU", "BlockGRUGrad"
LSTM, LSTM_GRAD = "BlockcellLSTM", "BlockcellLSTMGrad"

_ALL = json.loads(Path(__file__).with_name("ops.json").read_text(encoding="utf-8"))
_DECLARED = {declared["name"]: declared for declared in _ALL}

CUDNN = tuple(name for name in _DECLARED if name.startswith("Cudnn"))
"""TensorFlow's ops for cuDNN, which are not in the table: their attributes choose their shapes."""

# What a tensor is.
LENGTH, GATE, STATE, WEIGHT, GRADIENT = "length", "gate", "state", "weight", "gradient"

# When an op reads the values of an input: always, never, or with the attribute of this name.
ALWAYS, NEVER = "always", "never"
USE_PEEPHOLE, RESET_AFTER = "use_peephole", "reset_after"
FUNCTIONS = ("activation", "recurrent_activation")
"""The attributes that name the functions of a cell, where an op has them."""

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
    attributes: Tuple[str, ...] = ()
    """Names of the attributes, but for the element type."""
    types: Tuple[str, ...] = ("half", "float")
    """The element types that it has kernels for, as TensorFlow names them."""
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
        """The element types that the op has kernels for, as far as NumPy has them."""
        return tuple(_NUMPY[name] for name in _NUMPY if name in self.types)

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


def _kind(name: str) -> str:
    """What a tensor is, by its name."""
    if name in LENGTHS:
        return LENGTH
    if name.endswith("_grad") or name.startswith("d_") or name == "dicfo":
        return GRADIENT
    if name.startswith("w"):
        return WEIGHT
    return GATE if name in ("r", "u", "i", "f", "o") else STATE


def _op(name: str, declared: Dict[str, Any]) -> OpDef:
    attributes = tuple(attribute for attribute, _ in declared["attributes"])
    switch = next((each for each in attributes if each in _VECTORS_OF_SWITCH), ALWAYS)
    read = {"always": ALWAYS, "never": NEVER, "with_optional": switch}

    def tensors(of: str) -> Dict[str, Tensor]:
        return {
            tensor: Tensor(tensor, tuple(shape), _kind(tensor), *(read[when] for when in reads))
            for tensor, _, shape, *reads in declared[of]
        }

    own = {
        BLOCK_GRU: "block_gru",
        BLOCK_GRU_GRAD: "block_gru_grad",
        LSTM: "blockcell_lstm",
        LSTM_GRAD: "blockcell_lstm_grad",
    }
    return OpDef(
        name,
        inputs=tensors("inputs"),
        outputs=tensors("outputs"),
        attributes=attributes,
        types=tuple(declared["types"]),
        forward=name.replace("Grad", "") if "Grad" in name else None,
        function=own.get(name),
    )


OPS: Dict[str, OpDef] = {
    name: _op(name, _DECLARED[name])
    for name in (
        *(GRU_CELL, GRU_CELL_GRAD),
        *(LSTM_CELL, LSTM_CELL_GRAD),
        *(BLOCK_LSTM, BLOCK_LSTM_V2, BLOCK_LSTM_GRAD, BLOCK_LSTM_GRAD_V2),
        *(BLOCK_GRU, BLOCK_GRU_GRAD),
        *(LSTM, LSTM_GRAD),
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
