"""Times calls of a model from a file, as TensorFlow and Keras run it and with the library."""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

from blockcell_tools.bench.report import ratio_quartiles
from blockcell_tools.bench.turns import at_all_threads

SIDES = ("ours", "tensorflow")
LARGEST_ERROR = 1e-3
"""How much results may differ, relative to the largest element: many layers add rounding up."""


class ModelError(Exception):
    """The model cannot be called; says why."""


class Call(NamedTuple):
    """A call of a model."""

    file: str
    """A SavedModel's folder, or a file of Keras's."""
    batch: int
    time: int
    signature: str
    inputs: str
    """An `.npz` with the inputs by name; empty for random ones."""

    def arrays(self, seed):
        """What random inputs are drawn from."""
        return np.random.RandomState(seed)

    def array(self, name, shape, dtype, random):
        """An input: from the file, or random, with `batch` and `time` where its size is open.

        Args:
          name: The input's name.
          shape: Its `tf.TensorShape`, or a tuple.
          dtype: Its `tf.DType`, or the name of one.
          random: What `arrays` has returned.

        Raises:
          ModelError: There is none in the file, or nothing random can stand for it.
        """
        short = name.split(":")[0]
        if self.inputs:
            with np.load(self.inputs) as given:
                if short not in given:
                    raise ModelError(f"{self.inputs} has no input {short}")
                return given[short]
        sizes = _sizes(shape, short)
        sizes[:1] = [self.batch if size is None else size for size in sizes[:1]]
        sizes = [self.time if size is None else size for size in sizes]
        kind = np.dtype(getattr(dtype, "as_numpy_dtype", dtype))
        if kind.kind == "f":
            return (random.standard_normal(sizes) / 2).astype(kind)
        if kind.kind == "b":
            return np.ones(sizes, kind)
        if kind.kind not in "iu":
            raise ModelError(f"the input {short} holds {kind}: give the inputs by --inputs")
        if "len" in short.lower():  # The lengths of a batch's rows, as people call them.
            return np.full(sizes, self.time, kind)
        return random.randint(0, 2, sizes).astype(kind)


def _sizes(shape, name):
    """A shape's sizes; None is open."""
    rank = shape.rank if hasattr(shape, "rank") else len(shape)
    if rank is None:
        raise ModelError(f"the rank of the input {name} is open: give the inputs by --inputs")
    return shape.as_list() if hasattr(shape, "as_list") else list(shape)


class Row(NamedTuple):
    """A measurement."""

    threads: int
    tensorflow_seconds: float
    """The median."""
    ours_seconds: float
    ratio: float
    """The median of TensorFlow's time over ours in single rounds."""
    quartiles: tuple
    error: float
    """The largest difference of results, relative to the largest element."""


class Found(NamedTuple):
    """What was measured."""

    about: dict
    ran: dict
    """How often each kernel runs in a call, by op."""
    layers: list
    """Name, path and reason of each recurrent layer, where Keras reads the file."""
    rows: list


def measure(call, threads, seconds, seed, library):
    """Measures a call in turns, in two processes for each number of threads.

    Raises:
      WorkerError: The model cannot be called, or the sides' results differ.
    """
    rows = []
    about = {"versions": {}, "call": call._asdict()}
    module = "blockcell_tools.bench.model_side"
    for _, number, sides in at_all_threads(module, SIDES, [call], threads, library, about):
        turns = sides.take_turns(call, SIDES, seconds, seed, LARGEST_ERROR)
        ours = sides.abouts["ours"]
        stock, own = turns.seconds["tensorflow"], turns.seconds["ours"]
        error = turns.errors["tensorflow"]
        rows.append(
            Row(number, np.median(stock), np.median(own), *ratio_quartiles(stock, own), error)
        )
    return Found(about, ours["ran"], ours["layers"], rows)


def write(folder, found):
    """Writes a measurement as JSON; returns the file."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"model-{Path(found.about['call']['file']).stem}.json"
    content = dict(found._asdict(), rows=[row._asdict() for row in found.rows])
    file.write_text(json.dumps(content, indent=1, default=float) + "\n", encoding="utf-8")
    return file
