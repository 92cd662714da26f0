"""The recurrent layers in a file of Keras's, as nodes of the ops that they become."""

import json
import sys
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Union

from blockcell.op_table import BLOCK_GRU, BLOCK_LSTM_V2, LSTM
from blockcell_tools import processes

SUFFIXES = (".keras", ".h5", ".hdf5")
"""Of the files that Keras itself reads."""


def is_file(file: Union[str, Path]) -> bool:
    """Whether a file is one that Keras itself reads."""
    return Path(file).suffix in SUFFIXES


class KerasFileError(Exception):
    """Keras cannot read the file, or the library cannot serve it; says why."""


class Layer(NamedTuple):
    """A recurrent layer."""

    name: str
    op: str
    """The op that it becomes; its class where Keras's own path runs it."""
    dtype: str
    attributes: Dict[str, Any]
    """The op's."""
    kept: str
    """Why Keras's own path runs it; empty if it does not."""
    input_size: Optional[int]
    """None where the layer is not built."""
    cell_size: Optional[int]


def read(file: Union[str, Path]) -> List[Layer]:
    """Reads the layers, in a process of its own: it needs `blockcell.keras.enable()`.

    Raises:
      KerasFileError: As it says.
    """
    module = "blockcell_tools.keras_nodes"
    process = processes.run_module(module, [str(file)], without=["BLOCKCELL_OVERRIDE"])
    if process.returncode:
        raise KerasFileError(processes.last_line(process))
    return [Layer(*row) for row in json.loads(process.stdout.splitlines()[-1])]


def main(file: str) -> None:
    """Prints the layers of a file as JSON, in one line."""
    import tensorflow as tf

    from blockcell import keras
    from blockcell.keras import hooks

    keras.enable()
    model = tf.keras.models.load_model(file, compile=False)
    rows = []
    for layer, one in zip(hooks.recurrent_layers(model), keras.report(model)):
        # What is said of a layer that runs on the kernels is about training.
        rows.append(_layer(layer, "" if one.path == "blockcell" else one.reason))
    print(json.dumps(rows))


def _layer(layer: Any, reason: str) -> Layer:
    from blockcell.keras import functions, kinds, sequences

    kernel = getattr(getattr(layer, "cell", None), "kernel", None)
    input_size = None if kernel is None else int(kernel.shape[0])
    cell_size = getattr(getattr(layer, "cell", layer), "units", None)
    dtype = str(getattr(layer, "compute_dtype", "float32"))
    op = type(layer).__name__
    attributes: Dict[str, Any] = {}
    if not reason:
        is_lstm = kinds.of(layer) == kinds.LSTM
        of_cell = functions.of(layer.cell)
        attributes = dict(of_cell._asdict())
        if not is_lstm:
            op = BLOCK_GRU
            attributes["reset_after"] = bool(getattr(layer.cell, "reset_after", False))
        elif sequences.runs_on_tensorflows_op(of_cell, dtype):
            op, attributes = BLOCK_LSTM_V2, {"use_peephole": False, "cell_clip": -1.0}
        else:
            op = LSTM
    return Layer(layer.name, op, dtype, attributes, reason, input_size, cell_size)


if __name__ == "__main__":
    main(sys.argv[1])
