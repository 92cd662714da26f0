"""Writes calls of all ops, and what they must return, for the Java programs to check.

The values come from the float64 oracle of `blockcell_tools.reference`. NumPy is all it needs::

    python examples/java/make_values.py FOLDER

writes ``FOLDER/ops.npz``, with the same values at every run. Arrays are called
``case/kind/name``: a case is the name of the op and what sets it apart, a kind is ``attribute``,
``input`` or ``output``. ``FOLDER/keras2`` gets the SavedModels of the tests that Keras 2 wrote,
each with a file ``values.npz``: an input ``x``, and the model's ``output_0``.
"""

import argparse
import pathlib
import shutil
import sys
import tarfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "python"))

from blockcell import op_table  # noqa: E402
from blockcell_tools.reference.inputs import expected, inputs_of  # noqa: E402

MODELS = ROOT / "tests" / "python" / "graph_pass" / "keras2"
SIZES = {"batch": 5, "input_size": 7, "cell_size": 6, "time": 4}
LENGTH = SIZES["time"] - 1
"""The LSTMs' seq_len_max: the last step is padding. BlockGRU's lengths are random."""
NO_CELLS = {"batch": 2, "input_size": 3, "cell_size": 0, "time": 2}
"""Sizes at which stock kernels end the process in TensorFlow 1.15."""
ATTRIBUTES = {
    "LSTMBlockCell": {"forget_bias": 0.5, "cell_clip": 0.75},
    "BlockLSTM": {"forget_bias": 0.5, "cell_clip": 0.75},
    "BlockLSTMV2": {"cell_clip": 0.75},
}
"""Float attributes, none of them at its default."""


def arrays(name, op, inputs, attributes):
    """Returns the arrays of one case by name.

    Args:
      name: The name of the case.
      op: The op's name.
      inputs: Its inputs by name.
      attributes: Its attributes by name.
    """
    values = {
        "attribute": {
            key: np.array(value, np.bool_ if isinstance(value, bool) else np.float32)
            for key, value in attributes.items()
        },
        "input": inputs,
        "output": expected(op, inputs, **attributes),
    }
    return {
        f"{name}/{kind}/{key}": np.array(array, order="C")
        for kind, named in values.items()
        for key, array in named.items()
    }


def all_arrays():
    """Returns the arrays of all cases by name."""
    result = {}
    for op in op_table.OPS:
        length = LENGTH if "seq_len_max" in op_table.OPS[op].inputs else None
        for switches in op_table.switches(op):
            words = [f"{name}={str(on).lower()}" for name, on in switches.items()]
            attributes = {**ATTRIBUTES.get(op, {}), **switches}
            inputs = inputs_of(op, length=length, **SIZES, **switches)
            result.update(arrays(" ".join([op, *words]), op, inputs, attributes))
        empty = inputs_of(op, **NO_CELLS, **switches)
        result.update(arrays(" ".join([op, *words, "cell_size=0"]), op, empty, attributes))
    return result


def unpack_models(folder):
    """Puts the models of Keras 2 into a folder, each into one of its name."""
    shutil.rmtree(str(folder), ignore_errors=True)
    for path in MODELS.glob("*.tar.xz"):
        with tarfile.open(str(path)) as archive:
            archive.extractall(str(folder))
        (folder / "model").rename(folder / path.name[: -len(".tar.xz")])


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description="Write calls of all ops and their values.")
    parser.add_argument("folder", type=pathlib.Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "ops.npz", **all_arrays())
    unpack_models(folder / "keras2")


if __name__ == "__main__":
    main()
