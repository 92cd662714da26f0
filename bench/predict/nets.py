"""What is compared: a model of one recurrent layer with a dense one, on batches of sequences."""

from typing import Dict, NamedTuple

import numpy as np

from bench.nets import sizes, uniform

BATCHES = 32
"""Batches of a call of `predict`: it makes a dataset each time, which takes milliseconds."""

PREDICT, ON_BATCH = "predict", "predict_on_batch"
"""`Model.predict` of an array of many batches; `Model.predict_on_batch` of one."""


class Net(NamedTuple):
    """A model, its sizes, and what is called."""

    cell: str
    """"LSTM" or "GRU": a layer of default options."""
    call: str
    """`PREDICT` or `ON_BATCH`."""
    time: int
    batch: int
    input_size: int
    units: int

    shape = property(sizes)

    def __str__(self) -> str:
        """All of it, in words."""
        return f"{self.cell} {self.call} {self.shape}"

    @property
    def batches(self) -> int:
        """How many batches a call takes."""
        return BATCHES if self.call == PREDICT else 1

    def arrays(self, seed: int) -> Dict[str, np.ndarray]:
        """The input of all batches, batch first."""
        shape = (self.batches * self.batch, self.time, self.input_size)
        return {"x": uniform(np.random.RandomState(seed), *shape)}


NETS = [
    Net(cell, call, 50, batch, 64, units)
    for cell in ("LSTM", "GRU")
    for call in (PREDICT, ON_BATCH)
    for batch in (1, 32)
    for units in (64, 256)
]
"""Those that are measured."""
