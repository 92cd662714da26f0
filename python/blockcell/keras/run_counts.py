"""How often layers have run on the kernels.

What runs in functions is counted by the library: nodes have a label, the layer's. Eager calls are
counted here, because an eager op has no place for a label.
"""

import collections
from typing import Any, Counter, Dict, Tuple

import tensorflow as tf

from blockcell import loader, node_attributes, tf_internals
from blockcell.keras import exports, scope

LABEL = "_blockcell_label"
"""The attribute of nodes."""
_eager: Counter[str] = collections.Counter()


def mark(tensor: Any, layer: Any) -> None:
    """Counts the op that has made a tensor, whenever it runs, as a run of a layer.

    It also tells the op how `enable` wants it to compute.
    """
    label = scope.label(layer)
    if tf.executing_eagerly():
        _eager[label] += 1
        return
    how = scope.get().of(layer) or scope.How()
    node_attributes.put(tensor.op, weights=how.weights, precision=how.precision)
    if not exports.writes_for_kernels():  # Nothing of this process belongs into files.
        tf_internals.set_attribute(tensor.op, LABEL, label)


def runs(layer: Any) -> int:
    """How often a layer has run on the kernels, forward."""
    label = scope.label(layer)
    return int(_eager[label] + _in_functions().get(label, 0))


def how(layer: Any) -> Tuple[str, str]:
    """The precision of a layer's products on the kernels, and the kernels' instruction set.

    Args:
      layer: A layer that runs on the kernels.
    """
    info = loader.info()
    asked = scope.get().of(layer) or scope.How()
    weights = asked.weights or info["weights"]
    if layer.compute_dtype != "float32":
        precision = "highest"  # Its factors stay as they are.
    elif weights not in (None, "float32"):
        precision = weights
    elif asked.precision is None:
        precision = info["float32_matmul_runs"]
    else:
        known = info["layers"].get(scope.label(layer))
        precision = known["precision"] if known else asked.precision
    return precision or "", info["isa"] or ""


def of_all() -> Dict[str, int]:
    """How often each layer has run, also those that are gone: by name and a number."""
    return dict(_eager + collections.Counter(_in_functions()))


def _in_functions() -> Dict[str, int]:
    info = loader.info()
    return info["labels"] if info["loaded"] else {}
