"""How often layers have run on the kernels.

What runs in functions is counted by the library: nodes have a label, the layer's. Eager calls are
counted here, because an eager op has no place for a label.
"""

import collections
import contextlib
import threading
from typing import Any, Counter, Dict, Iterator

import tensorflow as tf

from blockcell import loader, tf_internals
from blockcell.keras import exports, scope

LABEL = "_blockcell_label"
"""The attribute of nodes."""
_state = threading.local()
_eager: Counter[str] = collections.Counter()


@contextlib.contextmanager
def of(layer: Any) -> Iterator[None]:
    """What `mark` is called with meanwhile belongs to a layer."""
    before = getattr(_state, "layer", None)
    _state.layer = layer
    try:
        yield
    finally:
        _state.layer = before


def mark(tensor: Any) -> None:
    """Counts the op that has made a tensor, whenever it runs, as a run of the layer."""
    layer = getattr(_state, "layer", None)
    if layer is None:
        return
    label = scope.label(layer)
    if tf.executing_eagerly():
        _eager[label] += 1
    elif not exports.writes_for_kernels():  # Nothing of this process belongs into files.
        tf_internals.set_attribute(tensor.op, LABEL, label)


def runs(layer: Any) -> int:
    """How often a layer has run on the kernels, forward."""
    label = scope.label(layer)
    info = loader.info()
    in_functions = info["labels"].get(label, 0) if info["loaded"] else 0
    return int(_eager[label] + in_functions)


def of_all() -> Dict[str, int]:
    """How often each layer has run, also those that are gone: by name and a number."""
    info = loader.info()
    return dict(_eager + collections.Counter(info["labels"] if info["loaded"] else {}))
