"""What is measured: ops on tensors of some shape, and the least work that they can be done with.

The tables of the ops themselves are in `blockcell.op_table`; `tables` says which of
them are measured.
"""

import os
from typing import Dict, List, NamedTuple, Optional, Set, Tuple

import numpy as np

from blockcell import op_table
from blockcell.loader import WEIGHTS_VARIABLE
from blockcell.op_table import (
    GATE,
    GRADIENT,
    LENGTH,
    RESET_AFTER,
    STATE,
    USE_PEEPHOLE,
    WEIGHT,
    OpDef,
    Tensor,
    size_of,
)
from blockcell.precision import VARIABLE
from blockcell_tools.bench.products import PRODUCTS

DTYPES = {"float32": np.dtype(np.float32), "half": np.dtype(np.float16)}
"""NumPy's name of each dtype."""


class Op(NamedTuple):
    """What a row measures: a kernel, or several of which each uses the outputs of those before."""

    name: str
    kernels: Tuple[OpDef, ...]

    @property
    def is_sequence(self) -> bool:
        """Whether its tensors have a dimension of time."""
        return self.kernels[0].is_sequence

    @property
    def has_peephole(self) -> bool:
        """Whether it has the attribute `use_peephole`."""
        return any(kernel.switch == USE_PEEPHOLE for kernel in self.kernels)

    @property
    def dtypes(self) -> Tuple[str, ...]:
        """The dtypes that all its kernels have."""
        return tuple(
            name
            for name, dtype in DTYPES.items()
            if all(dtype.type in kernel.dtypes for kernel in self.kernels)
        )

    @property
    def inputs(self) -> Tuple[Tensor, ...]:
        """The inputs that do not come from one of its own kernels; the first use counts."""
        known: Set[str] = set()
        inputs: List[Tensor] = []
        for kernel in self.kernels:
            inputs += [tensor for name, tensor in kernel.inputs.items() if name not in known]
            known.update(kernel.inputs, kernel.outputs)
        return tuple(inputs)

    @property
    def outputs(self) -> Tuple[Tensor, ...]:
        """The outputs of all its kernels."""
        return tuple(tensor for kernel in self.kernels for tensor in kernel.outputs.values())


class Workload(NamedTuple):
    """An op on tensors of one shape and type."""

    op: Op
    dtype: str
    use_peephole: bool
    time: Optional[int]
    """None where the op has no time."""
    batch: int
    input_size: int
    cell_size: int

    @property
    def shape(self) -> str:
        """The sizes, as on the command line."""
        sizes = [self.batch, self.input_size, self.cell_size]
        if self.input_size == self.cell_size:
            sizes.pop()
        if self.time is not None:
            sizes.insert(0, self.time)
        return "x".join(map(str, sizes))

    @property
    def rows(self) -> int:
        """Rows of the input: the batch, at every step of time."""
        return self.batch * (1 if self.time is None else self.time)

    @property
    def variant(self) -> str:
        """What tells cases of one op and shape apart."""
        return self.dtype + (", peephole" if self.use_peephole else "")

    def __str__(self) -> str:
        """All of it, in words."""
        return f"{self.op.name} {self.variant} {self.shape}"

    @property
    def sizes(self) -> Dict[str, int]:
        """The sizes that shapes are made of, by name."""
        return {
            "time": 1 if self.time is None else self.time,
            "batch": self.batch,
            "input_size": self.input_size,
            "cell_size": self.cell_size,
        }

    def shape_of(self, tensor: Tensor) -> Tuple[int, ...]:
        """The tensor's dimensions."""
        return tuple(size_of(dimension, self.sizes) for dimension in tensor.shape)

    def reads(self, tensor: Tensor) -> bool:
        """Whether the input's values are used. `BlockGRU` is measured with `reset_after`."""
        return op_table.reads(tensor, {USE_PEEPHOLE: self.use_peephole, RESET_AFTER: True})

    def _products(self) -> List[Tuple[int, ...]]:
        """Rows, columns and inner sizes of all matrix products."""
        return [
            tuple(size_of(dimension, self.sizes) for dimension in product)
            for kernel in self.op.kernels
            for product in PRODUCTS[kernel.name]
        ]

    @property
    def flops(self) -> int:
        """Floating-point operations of the products.

        Those of the elementwise equations are left out: they take less time than reading and
        writing their operands, which `bytes` counts.
        """
        return sum(2 * m * n * k for m, n, k in self._products())

    @property
    def bytes(self) -> int:
        """Bytes of all inputs whose values are used, and of all outputs, once for each kernel."""
        tensors = [
            tensor
            for kernel in self.op.kernels
            for tensor in [*filter(self.reads, kernel.inputs.values()), *kernel.outputs.values()]
        ]
        items = sum(int(np.prod(self.shape_of(tensor), dtype=np.int64)) for tensor in tensors)
        return items * DTYPES[self.dtype].itemsize

    @property
    def largest_error(self) -> float:
        """How much two kernels' outputs may differ, relative to an output's largest element.

        The stock kernels add up in the dtype itself, in half too: the more terms, the farther off.
        A constant covers short sums: half is rounded after every elementwise step.
        """
        terms = [k for _, _, k in self._products()]
        rounding = float(np.finfo(DTYPES[self.dtype]).eps) / 2
        shortest = {"float32": 4e-6, "half": 3e-2}[self.dtype]
        if self.dtype == "float32" and os.environ.get(VARIABLE) == "medium":
            shortest = 2e-2
        if self.constants:
            shortest = 4e-2
        return max(shortest, 4.0 * rounding * max(terms, default=1) ** 0.5)

    @property
    def constants(self) -> Tuple[str, ...]:
        """The weights, where they are measured in int8, as constants of a graph."""
        weights = os.environ.get(WEIGHTS_VARIABLE) or "float32"
        if weights == "float32" or self.dtype != "float32" or not self.op.is_sequence:
            return ()
        return tuple(tensor.name for tensor in self.op.inputs if tensor.kind == WEIGHT)

    def inputs(self, seed: int) -> Dict[str, np.ndarray]:
        """Input tensors by name: like those of a training step; zeros where they are not used."""
        random = np.random.RandomState(seed)
        scale = 1.0 / np.sqrt(self.input_size + self.cell_size)
        arrays = {}
        for tensor in self.op.inputs:
            shape = self.shape_of(tensor)
            if tensor.kind == LENGTH:
                arrays[tensor.name] = np.full(shape, self.time, np.int64)
                continue
            draw = _DRAW[tensor.kind] if self.reads(tensor) else _zeros
            arrays[tensor.name] = draw(random, shape, scale).astype(DTYPES[self.dtype])
        return arrays


def _zeros(random, shape, scale):
    return np.zeros(shape)


_DRAW = {
    GATE: lambda random, shape, scale: random.uniform(0.0, 1.0, shape),
    STATE: lambda random, shape, scale: random.uniform(-1.0, 1.0, shape),
    WEIGHT: lambda random, shape, scale: random.uniform(-scale, scale, shape),
    GRADIENT: lambda random, shape, scale: random.standard_normal(shape),
}
"""Values by kind, given the scale of weights that keeps their products with a state near 1."""
