"""The ops that are measured: their tensors, and the least work that they can be done with."""

from typing import Dict, NamedTuple, Tuple

import numpy as np

ALWAYS, PEEPHOLE, NEVER = "always", "with use_peephole", "never"
"""When an op uses the values of an input."""

ITEM_BYTES = {"float32": 4, "half": 2}
"""Bytes of a number of each dtype."""


class Tensor(NamedTuple):
    """An input or output of an op."""

    name: str
    shape: Tuple[str, ...]
    """Names of sizes, as in `Case.sizes`."""
    values: str = "gradient"
    """What the values of an input look like: a key of `_DRAW`."""
    read: str = ALWAYS
    """When the op uses the values of an input."""


class Op(NamedTuple):
    """An op of `tf.raw_ops`."""

    name: str
    inputs: Tuple[Tensor, ...]
    outputs: Tuple[Tensor, ...]
    products: Tuple[Tuple[str, str, str], ...]
    """Rows, columns and inner size of the matrix products that the op cannot do without."""
    dtypes: Tuple[str, ...]
    has_peephole: bool
    """Whether it has the attribute `use_peephole`."""


class Case(NamedTuple):
    """An op on tensors of one shape and type."""

    op: str
    dtype: str
    use_peephole: bool
    batch: int
    input_size: int
    cell_size: int

    @property
    def shape(self) -> str:
        """The sizes, as on the command line."""
        sizes = [self.batch, self.input_size, self.cell_size]
        return "x".join(map(str, sizes[:2] if self.input_size == self.cell_size else sizes))

    @property
    def variant(self) -> str:
        """What tells cases of one op and shape apart."""
        return self.dtype + (", peephole" if self.use_peephole else "")

    def __str__(self) -> str:
        """All of it, in words."""
        return f"{self.op} {self.variant} {self.shape}"

    @property
    def sizes(self) -> Dict[str, int]:
        """The sizes that shapes are made of, by name."""
        batch, input_size, cell_size = self.batch, self.input_size, self.cell_size
        return {
            "batch": batch,
            "input": input_size,
            "cell": cell_size,
            "2 cell": 2 * cell_size,
            "4 cell": 4 * cell_size,
            "input + cell": input_size + cell_size,
        }

    def shape_of(self, tensor: Tensor) -> Tuple[int, ...]:
        """The tensor's dimensions."""
        return tuple(self.sizes[name] for name in tensor.shape)

    def reads(self, tensor: Tensor) -> bool:
        """Whether the op uses the input's values."""
        return tensor.read == ALWAYS or (tensor.read == PEEPHOLE and self.use_peephole)

    @property
    def flops(self) -> int:
        """Floating-point operations of the products.

        Those of the elementwise equations are left out: they take less time than reading and
        writing their operands, which `bytes` counts.
        """
        sizes = self.sizes
        return sum(2 * sizes[m] * sizes[n] * sizes[k] for m, n, k in OPS[self.op].products)

    @property
    def bytes(self) -> int:
        """Bytes of all inputs whose values are used, and of all outputs, each counted once."""
        op = OPS[self.op]
        tensors = [tensor for tensor in op.inputs if self.reads(tensor)] + list(op.outputs)
        items = sum(int(np.prod(self.shape_of(tensor))) for tensor in tensors)
        return items * ITEM_BYTES[self.dtype]

    def inputs(self, seed: int) -> Dict[str, np.ndarray]:
        """Input tensors by name: like those of a training step; zeros where they are not used."""
        random = np.random.RandomState(seed)
        dtype = np.float16 if self.dtype == "half" else np.float32
        scale = 1.0 / np.sqrt(self.input_size + self.cell_size)
        arrays = {}
        for tensor in OPS[self.op].inputs:
            shape = self.shape_of(tensor)
            draw = _DRAW[tensor.values] if self.reads(tensor) else _zeros
            arrays[tensor.name] = draw(random, shape, scale).astype(dtype)
        return arrays


def _zeros(random, shape, scale):
    return np.zeros(shape)


_DRAW = {
    "gate": lambda random, shape, scale: random.uniform(0.0, 1.0, shape),
    "state": lambda random, shape, scale: random.uniform(-1.0, 1.0, shape),
    "weight": lambda random, shape, scale: random.uniform(-scale, scale, shape),
    "gradient": lambda random, shape, scale: random.standard_normal(shape),
}
"""Values by kind, given the scale of weights that keeps their products with a state near 1."""

_ROW = ("batch", "cell")

GRU_BLOCK_CELL_GRAD = Op(
    name="GRUBlockCellGrad",
    inputs=(
        Tensor("x", ("batch", "input"), read=NEVER),
        Tensor("h_prev", _ROW, "state"),
        Tensor("w_ru", ("input + cell", "2 cell"), "weight"),
        Tensor("w_c", ("input + cell", "cell"), "weight"),
        Tensor("b_ru", ("2 cell",), read=NEVER),
        Tensor("b_c", ("cell",), read=NEVER),
        Tensor("r", _ROW, "gate"),
        Tensor("u", _ROW, "gate"),
        Tensor("c", _ROW, "state"),
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
    has_peephole=False,
)

LSTM_BLOCK_CELL_GRAD = Op(
    name="LSTMBlockCellGrad",
    inputs=(
        Tensor("x", ("batch", "input"), read=NEVER),
        Tensor("cs_prev", _ROW, "state"),
        Tensor("h_prev", _ROW, read=NEVER),
        Tensor("w", ("input + cell", "4 cell"), read=NEVER),
        Tensor("wci", ("cell",), "weight", read=PEEPHOLE),
        Tensor("wcf", ("cell",), "weight", read=PEEPHOLE),
        Tensor("wco", ("cell",), "weight", read=PEEPHOLE),
        Tensor("b", ("4 cell",), read=NEVER),
        Tensor("i", _ROW, "gate"),
        Tensor("cs", _ROW, "state", read=PEEPHOLE),
        Tensor("f", _ROW, "gate"),
        Tensor("o", _ROW, "gate"),
        Tensor("ci", _ROW, "state"),
        Tensor("co", _ROW, "state"),
        Tensor("cs_grad", _ROW),
        Tensor("h_grad", _ROW),
    ),
    outputs=(
        Tensor("cs_prev_grad", _ROW),
        Tensor("dicfo", ("batch", "4 cell")),
        Tensor("wci_grad", ("cell",)),
        Tensor("wcf_grad", ("cell",)),
        Tensor("wco_grad", ("cell",)),
    ),
    products=(),
    dtypes=("float32", "half"),
    has_peephole=True,
)

OPS = {op.name: op for op in (GRU_BLOCK_CELL_GRAD, LSTM_BLOCK_CELL_GRAD)}
"""All ops, by name."""

SHAPES = (
    (1, 128, 128),
    (20, 200, 200),
    (32, 256, 256),
    (64, 512, 512),
    (20, 650, 650),
    (20, 1500, 1500),
    (128, 1024, 1024),
)
"""The usual batch, input and cell sizes: language models small to large, and a batch of one."""


def cases(ops, dtypes, peephole, shapes):
    """All cases of these ops, dtypes and (batch, input, cell) sizes.

    Args:
      ops: Names of ops.
      dtypes: Names of dtypes; an op is left out for those that it does not have.
      peephole: Values of `use_peephole`; an op without that attribute has one case.
      shapes: Batch, input and cell size of each shape.

    Returns:
      A list of `Case`, with the shapes of one op and variant next to each other.
    """
    return [
        Case(name, dtype, use_peephole, *shape)
        for name in ops
        for dtype in dtypes
        if dtype in OPS[name].dtypes
        for use_peephole in (peephole if OPS[name].has_peephole else [False])
        for shape in shapes
    ]
