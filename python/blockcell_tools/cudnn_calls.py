"""Runs the cuDNN RNN ops as nodes of a graph.

Shapes are unknown when the graph is built: what checks them is the kernel.
"""

import functools
from typing import Any, Dict, Mapping, Sequence

import numpy as np
import tensorflow as tf

from blockcell_tools.reference import cudnn
from blockcell_tools.reference.cudnn_inputs import FORWARD, suffix

FORWARD_INPUTS = ("input", "input_h", "input_c", "params", "sequence_lengths")
"""Inputs of the forward ops; only those of version 3 have the last one."""


def forward_op(version: int, tensors: Mapping[str, Any], **attributes: Any) -> Dict[str, Any]:
    """The forward op of a version; a dictionary of its outputs."""
    names = FORWARD_INPUTS if version == 3 else FORWARD_INPUTS[:-1]
    op = getattr(tf.raw_ops, "CudnnRNN" + suffix(version))
    return dict(op(**{name: tensors[name] for name in names}, **attributes)._asdict())


def backprop_op(version: int, tensors: Mapping[str, Any], **attributes: Any) -> Dict[str, Any]:
    """The Backprop op of a version; a dictionary of its outputs."""
    names = [*FORWARD_INPUTS[:4], *FORWARD, *(name + "_backprop" for name in FORWARD)]
    names += ["reserve_space"]
    names += ["host_reserved"] if version > 1 else []
    names += ["sequence_lengths"] if version == 3 else []
    op = getattr(tf.raw_ops, "CudnnRNNBackprop" + suffix(version))
    return dict(op(**{name: tensors[name] for name in names}, **attributes)._asdict())


@functools.lru_cache(maxsize=None)
def _graph(version: int, dtype: str, is_training: bool, attributes: Any) -> Any:
    """A graph with the forward op and its Backprop, its placeholders and its outputs by name."""
    return _new_graph(version, dtype, is_training, attributes, {})


def _new_graph(
    version: int, dtype: str, is_training: bool, attributes: Any, constants: Mapping[str, Any]
) -> Any:
    names = FORWARD_INPUTS + tuple(name + "_backprop" for name in FORWARD)
    with tf.Graph().as_default() as graph:
        feeds = {
            name: tf.compat.v1.placeholder(
                tf.int32 if name == "sequence_lengths" else dtype, name=name
            )
            for name in names
            if name not in constants
        }
        tensors = {**feeds, **{name: tf.constant(value) for name, value in constants.items()}}
        outputs = forward_op(version, tensors, is_training=is_training, **dict(attributes))
        if is_training:
            outputs.update(backprop_op(version, {**tensors, **outputs}, **dict(attributes)))
    return graph, feeds, outputs


@functools.lru_cache(maxsize=None)
def _session(graph: Any, threads: int) -> Any:
    config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=threads)
    return tf.compat.v1.Session(graph=graph, config=config)


def run(
    network: cudnn.Network,
    inputs: Mapping[str, np.ndarray],
    version: int = 3,
    is_training: bool = True,
    threads: int = 0,
    calls: int = 1,
    constants: Sequence[str] = (),
    **attributes: Any,
) -> Dict[str, np.ndarray]:
    """Returns the outputs of the forward op, and with `is_training` those of its Backprop.

    Dropout has other masks in each call of a node. A new session begins with the first ones again,
    so one is made for each call of this function with dropout.

    Args:
      network: What attributes and shapes say.
      inputs: What `inputs_of` returns.
      version: 1, 2 or 3.
      is_training: The attribute.
      threads: How many threads an op may use; 0 is TensorFlow's default.
      calls: How often to run; the outputs of the last one are returned.
      constants: Names of inputs that are constants of the graph.
      **attributes: More attributes, or other ones than the network's.
    """
    attributes = {**network.attributes, **attributes}
    if network.num_proj:
        attributes["num_proj"] = network.num_proj
    dtype = inputs["input"].dtype.name
    kind = (version, dtype, is_training, tuple(sorted(attributes.items())))
    made = _new_graph(*kind, {name: inputs[name] for name in constants}) if constants else None
    graph, feeds, fetches = made or _graph(*kind)
    is_new = made or "dropout" in attributes
    session = (_session.__wrapped__ if is_new else _session)(graph, threads)
    got = {}
    for _ in range(calls):
        got = session.run(fetches, {feeds[name]: inputs[name] for name in feeds})
    return got
