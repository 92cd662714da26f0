"""A step of a graph from a file of TensorFlow 1.x: what is fetched, and what is fed."""

import functools
import inspect
import os
from typing import Any, Dict, List, NamedTuple

import tensorflow as tf

from blockcell_tools import cudnn_verification, graph_nodes, graph_plan
from blockcell_tools.comparison.models import Call, ModelError

_SEEDS = ("seed", "seed2")
_QUEUES = ("QueueDequeue", "IteratorGetNext", "OneShotIterator")
"""Beginnings of the names of ops from which a graph takes inputs that nobody can feed."""


class Step(NamedTuple):
    """A step."""

    graph: Any
    fetched: Dict[str, Any]
    fed: Dict[Any, Any]
    trains: bool
    variables: Dict[str, Any]
    """Those that are trained, by name."""
    saver: Any
    """What restores the checkpoint beside a MetaGraph; None if there is none."""
    checkpoint: str

    def initialize(self, session: Any) -> None:
        """Gives variables their values: of the checkpoint, or else the first ones."""
        with self.graph.as_default():
            session.run(
                [
                    tf.compat.v1.global_variables_initializer(),
                    tf.compat.v1.local_variables_initializer(),
                    tf.compat.v1.tables_initializer(),
                ]
            )
        if self.saver is not None:
            self.saver.restore(session, self.checkpoint)


def read(call: Call, random: Any) -> Step:
    """Reads the graph that a `Call` names.

    Raises:
      ModelError: There is nothing to run, or it cannot be fed.
    """
    meta_graph = graph_nodes.meta_graphs(call.file)[0]
    _set_seeds(meta_graph.graph_def)
    saver, checkpoint = None, os.path.splitext(call.file)[0]
    with tf.Graph().as_default() as graph:
        if meta_graph.collection_def:
            saver = tf.compat.v1.train.import_meta_graph(meta_graph, clear_devices=True)
            if not os.path.exists(checkpoint + ".index"):
                saver = None
        else:
            definition = graph_nodes.without_colocation(meta_graph.graph_def)
            tf.import_graph_def(definition, name="")
        others = tuple(cudnn_verification.OPS)
        targets = call.targets or graph_plan.targets_of(graph, meta_graph, others)
        if not targets:
            raise ModelError("nothing in the graph follows an LSTM or GRU: pass a --target")
        fetched = {name: _element(graph, name) for name in targets}
        names = [_operation(one).name for one in fetched.values()]
        needed = tf.compat.v1.graph_util.extract_sub_graph(graph.as_graph_def(), names).node
        trained = set(graph_plan.train_ops(graph, meta_graph)) | {
            name for name, one in fetched.items() if isinstance(one, tf.Operation)
        }
        variables = {one.name: one for one in tf.compat.v1.trainable_variables()}
        trains = bool(variables) and not trained.isdisjoint(targets)
        fed = _fed(call, graph, needed, random)
        return Step(graph, fetched, fed, trains, variables, saver, checkpoint)


def _set_seeds(graph_def: Any) -> None:
    """Gives random ops without a seed one, so that each side has the same numbers."""
    bodies = [function.node_def for function in graph_def.library.function]
    nodes = [node for body in [graph_def.node, *bodies] for node in body]
    for number, node in enumerate(nodes, 1):
        # A file may leave out attributes that have their defaults.
        seeds = [node.attr[name].i if name in node.attr else 0 for name in _SEEDS]
        if seeds == [0, 0] and _has_seeds(node.op):
            node.attr["seed2"].i = number


@functools.lru_cache(maxsize=None)
def _has_seeds(op: str) -> bool:
    """Whether ops of this name take seeds."""
    function = getattr(tf.raw_ops, op, None)
    return function is not None and set(_SEEDS) <= set(inspect.signature(function).parameters)


def _element(graph: Any, name: str) -> Any:
    """What a name of a target stands for: a tensor, or an operation without one of floats."""
    try:
        one = graph.as_graph_element(name)
    except (KeyError, ValueError) as error:
        raise ModelError(f"the graph has no {name}: pass another --target") from error
    if isinstance(one, tf.Operation):
        return next((output for output in one.outputs if output.dtype.is_floating), one)
    return one


def _operation(one: Any) -> Any:
    return one if isinstance(one, tf.Operation) else one.op


def _fed(call: Call, graph: Any, needed: List[Any], random: Any) -> Dict[Any, Any]:
    """Arrays for the placeholders that a step needs."""
    for node in needed:
        if node.op.startswith(_QUEUES):
            raise ModelError(
                f"the graph reads its inputs from {node.name} ({node.op}), not from placeholders"
            )
    names = sorted(node.name for node in needed if node.op == "Placeholder")
    tensors = [graph.get_tensor_by_name(name + ":0") for name in names]
    return {one: call.array(one.name, one.shape, one.dtype, random) for one in tensors}
