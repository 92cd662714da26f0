"""Attributes by which a node of a graph says how it is to be computed."""

from typing import Any, Optional

import tensorflow as tf

from blockcell import tf_internals

WEIGHTS = "_blockcell_weights"
"""What its constant weights are packed as."""
PRECISION = "_blockcell_precision"
"""How precise its matrix products are."""


def put(operation: Any, weights: Optional[str], precision: Optional[str]) -> None:
    """Gives a node those that are not None."""
    for name, text in ((WEIGHTS, weights), (PRECISION, precision)):
        if text is not None:
            tf_internals.set_attribute(operation, name, text)


def hand_on(forward: Any, gradient: Any) -> None:
    """Lets a gradient be computed as its forward op was.

    Args:
      forward: An output of the forward op.
      gradient: An output of its gradient op. Nodes of graphs alone have such attributes.
    """
    if not (_is_of_graph(forward) and _is_of_graph(gradient)):
        return
    for name in (WEIGHTS, PRECISION):
        if name in forward.op.node_def.attr:
            text = tf.compat.as_str(forward.op.get_attr(name))
            tf_internals.set_attribute(gradient.op, name, text)


def _is_of_graph(tensor: Any) -> bool:
    return not hasattr(tensor, "numpy")
