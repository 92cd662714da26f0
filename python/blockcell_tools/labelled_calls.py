"""Runs an op on its stock kernel or on ours, both in one process.

The library has to be loaded with `take_over=False`, so that unlabelled nodes stay stock.
Shapes are unknown when the graph is built: what checks them is the kernel.
"""

import contextlib
import functools
from typing import Any, Dict, Iterator, Mapping, Sequence

import numpy as np
import tensorflow as tf

from blockcell import loader, tf_internals
from blockcell.op_table import OPS, STOCK

OURS, STOCK_KERNEL = "blockcell", ""


def call(op: str, inputs: Mapping[str, Any], **attributes: Any) -> Dict[str, Any]:
    """The op on tensors, as `tf.raw_ops` has it; a dictionary of its outputs."""
    own = OPS[op].function
    function = getattr(loader.module(), own) if own else getattr(tf.raw_ops, op)
    return dict(function(**inputs, **attributes)._asdict())


@contextlib.contextmanager
def labelled(kernel: str = OURS) -> Iterator[None]:
    """Nodes made in the default graph run on our kernels, or on the stock ones."""
    labels = {op: kernel for op in STOCK} if kernel else {}
    with tf_internals.kernel_labels(tf.compat.v1.get_default_graph(), labels):
        yield


@functools.lru_cache(maxsize=None)
def _session(op: str, kernel: str, dtypes: Any, attributes: Any) -> Any:
    """A session, its placeholders and its outputs by name, kept for all calls of this kind."""
    return _new_session(op, kernel, dtypes, attributes, {})


def _new_session(
    op: str, kernel: str, dtypes: Any, attributes: Any, constants: Mapping[str, np.ndarray]
) -> Any:
    with tf.Graph().as_default() as graph, labelled(kernel):
        feeds = {name: tf.compat.v1.placeholder(dtype, name=name) for name, dtype in dtypes}
        made = {name: tf.constant(value) for name, value in constants.items()}
        outputs = call(op, {**feeds, **made}, **dict(attributes))
    return tf.compat.v1.Session(graph=graph), feeds, outputs


def run(
    op: str,
    inputs: Mapping[str, np.ndarray],
    kernel: str = OURS,
    constants: Sequence[str] = (),
    **attributes: Any,
) -> Dict[str, np.ndarray]:
    """Returns the op's outputs as a dictionary of NumPy arrays.

    Args:
      op: Name of the op.
      inputs: Dictionary of its inputs, NumPy arrays.
      kernel: `OURS` or `STOCK_KERNEL`.
      constants: Names of inputs that are constants of the graph.
      **attributes: The op's attributes.
    """
    dtypes = tuple((k, value.dtype.name) for k, value in inputs.items() if k not in constants)
    kind = (op, kernel, dtypes, tuple(sorted(attributes.items())))
    if not constants:
        session, feeds, fetches = _session(*kind)
        return session.run(fetches, {feeds[name]: value for name, value in inputs.items()})
    session, feeds, fetches = _new_session(*kind, {name: inputs[name] for name in constants})
    with session:
        return session.run(fetches, {feed: inputs[name] for name, feed in feeds.items()})
