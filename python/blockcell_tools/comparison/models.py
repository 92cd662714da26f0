"""Times calls of a model from a file, as TensorFlow and Keras run it and with the library."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from blockcell_tools import graph_plan, keras_nodes
from blockcell_tools.bench.report import at
from blockcell_tools.bench.turns import at_all_threads
from blockcell_tools.comparison.results import Difference, Found, answers_of, row_of

SIDES = ("ours", "tensorflow")
OF_INFO = ("float32_matmul_runs", "weights", "kept_weight_bytes")
"""What is told of `blockcell.info()`."""
KERAS, SAVED_MODEL, GRAPH = "file of Keras", "SavedModel", "graph"
_SUFFIXES = {
    **dict.fromkeys(keras_nodes.SUFFIXES, KERAS),
    **dict.fromkeys((".pb", ".pbtxt", ".meta"), GRAPH),
}


class ModelError(Exception):
    """The model cannot be called; says why."""


class Call(NamedTuple):
    """A call of a model."""

    file: str
    """A SavedModel's folder, a file of Keras's, or that of a GraphDef or MetaGraph."""
    batch: int
    time: int
    signature: str
    inputs: str
    """An `.npz` with the inputs by name; empty for random ones."""
    targets: list
    """Of a graph: the names of what is run; empty for what trains, or else follows the cells."""

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
            raise ModelError(f"the input {short} is of type {kind}: pass the inputs by --inputs")
        if "len" in short.lower():  # The lengths of a batch's rows, as people call them.
            return np.full(sizes, self.time, kind)
        return random.randint(0, 2, sizes).astype(kind)


def _sizes(shape, name):
    """A shape's sizes; None is open."""
    rank = shape.rank if hasattr(shape, "rank") else len(shape)
    if rank is None:
        raise ModelError(f"the rank of the input {name} is unknown: pass the inputs by --inputs")
    return shape.as_list() if hasattr(shape, "as_list") else list(shape)


def kind_of(file):
    """What kind of model a file or folder is, by its name; None if it is none."""
    path = Path(file)
    names = ("saved_model.pb", "saved_model.pbtxt")
    if any((path / name).is_file() for name in names):
        return SAVED_MODEL
    return None if path.is_dir() else _SUFFIXES.get(path.suffix)


def measure(call, threads, seconds, seed, library, told):
    """Measures a call in turns, in two processes for each number of threads.

    Args:
      call: The `Call`.
      threads: Numbers of threads.
      seconds: Time for the rounds of each.
      seed: Of random inputs.
      library: The library's file, or None.
      told: Called with what happens, and the share of the time that has passed.

    Returns:
      What was `Found`.

    Raises:
      WorkerError: The model cannot be called.
    """
    kind = kind_of(call.file)
    told("reading the graph", 0.0)
    stays = [] if kind == KERAS else list(_stays(call))
    rows, differences, memory = [], [], {}
    about = {"versions": {}, "call": call._asdict()}
    module = "blockcell_tools.comparison.model_side"
    told("starting TensorFlow", 0.0)
    for _, number, sides in at_all_threads(module, SIDES, [call], threads, library, about):
        place = threads.index(number)
        words = f"measuring, {at(number)}"

        def advance(share, words=words, place=place):
            told(words, (place + share) / len(threads))

        advance(0.0)
        turns = sides.take_turns(call, SIDES, seconds, seed, np.inf, advance)
        ours, theirs = map(sides.about, SIDES)
        step = ours["step"]
        rows.append(row_of(step, number, turns.seconds["tensorflow"], turns.seconds["ours"]))
        results = [sides.results(name) for name in SIDES]
        mean = max((_mean(ours, theirs) for ours, theirs in _pairs(*results)), default=None)
        largest = turns.errors["tensorflow"]
        differences.append(Difference(f"results on {at(number)}", largest, mean))
        memory = {"without": theirs["memory"], "ours": ours["memory"]}
        about.update({name: ours[name] for name in OF_INFO})
        if theirs["notes"]:
            about["notes"] = theirs["notes"]
    stays += [f"{layer}: {reason}" for layer, reason in ours["layers"]]
    layers = ours["int8_errors"]
    answers = [answers_of(name, results[0][name], results[1][name]) for name in results[0]]
    answers = [one for one in answers if one is not None] if layers else []
    found = (about, kind, rows, memory, ours["ran"], stays, differences, {}, {}, layers, answers)
    return Found(*found)


def _pairs(ours, theirs):
    return [(ours[name], theirs[name]) for name in ours if ours[name].size]


def _mean(ours, theirs):
    """The mean error, relative to the largest element."""
    return float(np.mean(np.abs(ours - theirs)) / max(np.max(np.abs(theirs)), 1e-30))


def _stays(call):
    """What the graph passes leave as it is, and why."""
    try:
        places = graph_plan.read(call.file, call.targets)
    except graph_plan.PlanError as error:
        return [f"what the graph passes do is not known: {error}"]
    return graph_plan.lines([place for place in places if place.becomes is None])
