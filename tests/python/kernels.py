"""Runs an op on its stock kernel or on ours, both in one process.

The test session loads the library with BLOCKCELL_OVERRIDE=0, so that unlabelled nodes stay stock.
Shapes are unknown when the graph is built: what checks them is the kernel.
"""

import functools

import tensorflow as tf

OURS, STOCK = "blockcell", ""


@functools.lru_cache(maxsize=None)
def _session(op, kernel, dtypes, attributes):
    """A session, its placeholders and its outputs by name, kept for all calls of this kind."""
    graph = tf.Graph()
    with graph.as_default(), graph._kernel_label_map({op: kernel} if kernel else {}):
        feeds = {name: tf.compat.v1.placeholder(dtype, name=name) for name, dtype in dtypes}
        outputs = getattr(tf.raw_ops, op)(**feeds, **dict(attributes))._asdict()
    return tf.compat.v1.Session(graph=graph), feeds, dict(outputs)


def run(op, inputs, kernel=OURS, **attributes):
    """Returns the op's outputs as a dictionary of NumPy arrays.

    Args:
      op: Name of the op.
      inputs: Dictionary of its inputs, NumPy arrays.
      kernel: `OURS` or `STOCK`.
      **attributes: The op's attributes.
    """
    dtypes = tuple((name, value.dtype.name) for name, value in inputs.items())
    session, feeds, fetches = _session(op, kernel, dtypes, tuple(sorted(attributes.items())))
    return session.run(fetches, {feeds[name]: value for name, value in inputs.items()})
