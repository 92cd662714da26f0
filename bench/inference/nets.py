"""What is compared: layers of cells over a sequence, with the same weights everywhere."""

from pathlib import Path
from typing import Dict, List, NamedTuple

import numpy as np

from bench.nets import sizes, uniform

FOLDER = Path("build") / "inference"
"""Where `bench.inference.write` puts frozen graphs, and `write_keras` SavedModels."""

PLAIN, LENGTHS, STACK, BIDIRECTIONAL = "plain", "lengths", "2 layers", "bidirectional"
"""One layer; one with `sequence_length`; a `MultiRNNCell` of two; `bidirectional_dynamic_rnn`."""

BLOCK = "block cell"
"""One layer of `LSTMBlockCell` or `GRUBlockCellV2`; the others have plain cells."""

KERAS2 = "Keras 2"
"""A SavedModel of Keras 2: an `LSTM` layer, and a `Bidirectional(GRU)` of half the units."""

KERAS3 = "Keras 3"
"""A SavedModel of Keras 3: one layer. TensorFlow 1.15 does not know its ops."""


class Net(NamedTuple):
    """Layers, and their sizes. Initial states are zero."""

    cell: str
    """"lstm", "gru", or "both"."""
    form: str
    time: int
    batch: int
    input_size: int
    units: int

    shape = property(sizes)

    def __str__(self) -> str:
        """All of it, in words."""
        return f"{self.cell} {self.form} {self.shape}"

    @property
    def file(self) -> Path:
        """The frozen graph, or the folder of a SavedModel: of any number of steps and rows."""
        name = f"{self.cell}-{self.form.replace(' ', '-')}-{self.input_size}-{self.units}"
        return FOLDER / (name if self.form in (KERAS2, KERAS3) else name + ".pb")

    @property
    def cells(self) -> int:
        """How many cells there are."""
        if self.form == KERAS2:
            return 3
        return 2 if self.form in (STACK, BIDIRECTIONAL) else 1

    @property
    def results(self) -> List[str]:
        """Names of the results: the output, and the states in the end, c before h.

        SavedModels have the output alone.
        """
        if self.form in (KERAS2, KERAS3):
            return ["output"]
        states = self.cells * {"lstm": 2, "gru": 1}[self.cell]
        return ["output", *(f"state_{k}" for k in range(states))]

    def arrays(self, seed: int) -> Dict[str, np.ndarray]:
        """The input, batch first, and the lengths of the rows if they have any."""
        random = np.random.RandomState(seed)
        arrays = {"x": uniform(random, self.batch, self.time, self.input_size)}
        if self.form == LENGTHS:
            arrays["lengths"] = random.randint(1, self.time + 1, self.batch).astype(np.int32)
        return arrays


LARGE = (32, 64, 256)
NETS = [Net(cell, PLAIN, 50, *sizes) for cell in ("lstm", "gru") for sizes in ((1, 64, 128), LARGE)]
NETS += [Net(cell, LENGTHS, 50, *LARGE) for cell in ("lstm", "gru")]
NETS += [Net("lstm", form, 50, *LARGE) for form in (STACK, BIDIRECTIONAL)]
NETS += [
    Net(cell, BLOCK, 50, *sizes) for cell in ("lstm", "gru") for sizes in ((1, 64, 128), LARGE)
]
NETS += [Net("both", KERAS2, 50, batch, 64, 256) for batch in (1, 8, 32)]
NETS += [
    Net(cell, KERAS3, 50, *sizes) for cell in ("lstm", "gru") for sizes in ((1, 64, 128), LARGE)
]
"""Those that are measured."""
