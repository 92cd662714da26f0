"""What is compared: a layer of cells over a sequence, with the same weights everywhere."""

from pathlib import Path
from typing import Dict, NamedTuple

import numpy as np

LARGEST_ERROR = 2e-5
"""How much results may differ, relative to the largest element."""

FOLDER = Path("build") / "inference"
"""Where `bench.inference.write` puts frozen graphs."""


class Net(NamedTuple):
    """A layer, and its sizes. Initial states are zero."""

    cell: str
    """"lstm" or "gru"."""
    time: int
    batch: int
    input_size: int
    units: int

    @property
    def shape(self) -> str:
        """Sizes in words: time, batch, input size, units."""
        return "x".join(map(str, self[1:]))

    def __str__(self) -> str:
        """All of it, in words."""
        return f"{self.cell} {self.shape}"

    @property
    def file(self) -> Path:
        """The frozen graph: of any number of steps and rows."""
        return FOLDER / f"{self.cell}-{self.input_size}-{self.units}.pb"

    def arrays(self, seed: int) -> Dict[str, np.ndarray]:
        """The input, batch first."""
        random = np.random.RandomState(seed)
        shape = (self.batch, self.time, self.input_size)
        return {"x": random.uniform(-1.0, 1.0, shape).astype(np.float32)}


NETS = [
    Net(cell, 50, *sizes) for cell in ("lstm", "gru") for sizes in ((1, 64, 128), (32, 64, 256))
]
"""Those that are measured."""
