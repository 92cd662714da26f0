"""The errors of layers with int8 weights, relative to the same layers in float32."""

import contextlib
import ctypes
import re
from typing import Any, Dict, Iterator

from blockcell import loader

_NUMBER = re.compile(r"#\d+$")
"""What `blockcell.keras` puts behind the name of a layer."""


@contextlib.contextmanager
def int8_errors() -> Iterator[Dict[str, Dict[str, Any]]]:
    """Also computes layers with int8 weights in float32, and returns the errors.

    Use it around calls with a sample of your data. Each layer is computed twice on the same inputs,
    so its error does not include that of the layers before it. Results are those of int8.

        blockcell.load(weights="int8")
        with blockcell.int8_errors() as errors:
            model.predict(sample)
        print(errors["lstm"]["largest"])

    Yields:
      A dictionary, which has one dictionary per layer when the context ends. The keys are the
      names of Keras's layers, or of nodes. A layer has `op`, the op that computes it; `calls`, the
      number of calls; and `largest` and `mean`, the errors of the outputs, relative to the largest
      element of the outputs in float32. Layers that run in float32 are not in it.
    """
    note = ctypes.CDLL(loader.path()).blockcell_note_int8_errors
    found: Dict[str, Dict[str, Any]] = {}
    note(ctypes.c_int32(1))
    try:
        yield found
    finally:
        note(ctypes.c_int32(0))
        found.update(_named(loader.info()["int8_errors"]))


def _named(noted: Dict[str, Dict[str, Any]]) -> Dict[str, Dict[str, Any]]:
    """The same, where Keras's layers have numbers only if their names do not tell them apart."""
    names = [_NUMBER.sub("", label) for label in noted]
    return {
        name if names.count(name) == 1 else label: errors
        for name, (label, errors) in zip(names, noted.items())
    }
