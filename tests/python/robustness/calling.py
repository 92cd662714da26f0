"""Runs an op in one of several ways. In all but one, shapes are unknown while a graph is built."""

import functools
from typing import Any, Dict, List, NamedTuple

import numpy as np
import tensorflow as tf

from blockcell import loader
from blockcell.op_table import OPS
from robustness.judging import Answer

v1 = tf.compat.v1


def function(op):
    """The Python function of an op."""
    if hasattr(tf.raw_ops, op):
        return getattr(tf.raw_ops, op)
    own = OPS[op].function if op in OPS else None
    return getattr(loader.module(), own or _snake(op))


def _snake(name):
    """BlockcellLSTMCellGrad: blockcell_lstm_cell_grad, as TensorFlow has it."""
    words = ""
    for k, letter in enumerate(name):
        before, after = name[k - 1 : k], name[k + 1 : k + 2]
        if letter.isupper() and before and (before.islower() or after.islower()):
            words += "_"
        words += letter.lower()
    return words


def _kinds(inputs):
    """Names of the inputs, each with its type, or the types of its list."""
    return tuple(
        (name, tuple(v.dtype.name for v in value))
        if isinstance(value, list)
        else (name, np.asarray(value).dtype.name)
        for name, value in inputs.items()
    )


def _flat(inputs):
    """All arrays of the inputs."""
    values = []
    for value in inputs.values():
        values += value if isinstance(value, list) else [value]
    return values


def _packed(kinds, tensors):
    """The arguments of an op, from all its tensors."""
    tensors, arguments = iter(tensors), {}
    for name, kind in kinds:
        if isinstance(kind, tuple):
            arguments[name] = [next(tensors) for _ in kind]
        else:
            arguments[name] = next(tensors)
    return arguments


def _outputs(result):
    return tf.nest.flatten(result)


def _types(kinds):
    for _, kind in kinds:
        yield from kind if isinstance(kind, tuple) else (kind,)


class _Frozen(dict):
    """Attributes as the key of a cache."""

    def __hash__(self):
        return hash(repr(sorted(self.items())))

    def __eq__(self, other):  # NaN is not equal to itself.
        return repr(sorted(self.items())) == repr(sorted(other.items()))


class Node(NamedTuple):
    """An op in a graph."""

    feeds: Dict[Any, Any]
    """The values of its inputs, by their placeholders."""
    fetches: List[Any]
    """Its outputs."""


def node(op, inputs, attributes):
    """Makes a `Node` in the default graph. The shapes of its inputs are unknown there."""
    feeds, fetches = _made(op, _kinds(inputs), attributes)
    return Node(dict(zip(feeds, _flat(inputs))), fetches)


def _made(op, kinds, attributes, shapes=None):
    """Placeholders, and the outputs of the op on them."""
    types = list(_types(kinds))
    shapes = shapes or [None] * len(types)
    feeds = [v1.placeholder(*of_one) for of_one in zip(types, shapes)]
    return feeds, _outputs(function(op)(**_packed(kinds, feeds), **attributes))


@functools.lru_cache(maxsize=8)
def _session(op, kinds, attributes):
    with tf.Graph().as_default() as graph:
        feeds, fetches = _made(op, kinds, attributes)
    return v1.Session(graph=graph), feeds, fetches


def _in_session(op, inputs, attributes):
    session, feeds, fetches = _session(op, _kinds(inputs), _Frozen(attributes))
    return session.run(fetches, dict(zip(feeds, _flat(inputs))))


def _in_graph_of_its_own(op, inputs, attributes):
    """The shapes are known when the graph is built, and the op's shape function sees them."""
    values = _flat(inputs)
    with tf.Graph().as_default() as graph:
        shapes = [np.shape(value) for value in values]
        feeds, fetches = _made(op, _kinds(inputs), attributes, shapes)
        known = [fetch.shape for fetch in fetches]
    with v1.Session(graph=graph) as session:
        found = session.run(fetches, dict(zip(feeds, values)))
    for array, shape in zip(found, known):
        # Nobody reads the first output of a loop that is told so.
        is_read = attributes.get("needs_h", True) or array is not found[0]
        if is_read and not shape.is_compatible_with(array.shape):
            raise AssertionError(f"an output has the shape {array.shape}, announced is {shape}")
    return found


def _eagerly(op, inputs, attributes):
    tensors = [tf.constant(value) for value in _flat(inputs)]
    result = function(op)(**_packed(_kinds(inputs), tensors), **attributes)
    return [tensor.numpy() for tensor in _outputs(result)]


@functools.lru_cache(maxsize=8)
def _function(op, kinds, attributes):
    signature = [tf.TensorSpec(None, kind) for kind in _types(kinds)]
    return tf.function(
        lambda *tensors: _outputs(function(op)(**_packed(kinds, tensors), **attributes)),
        input_signature=signature,
    )


def _in_function(op, inputs, attributes):
    call = _function(op, _kinds(inputs), _Frozen(attributes))
    return [tensor.numpy() for tensor in call(*map(tf.constant, _flat(inputs)))]


MODES = {
    "session": _in_session,
    "known shapes": _in_graph_of_its_own,
    "eager": _eagerly,
    "function": _in_function,
}
"""The ways, by name. TensorFlow 1.15 has the first two: elsewhere it keeps its own kernels."""


def answer(mode, op, inputs, attributes):
    """Runs an op; returns an `Answer`."""
    try:
        return Answer(MODES[mode](op, inputs, attributes), None, "")
    except tf.errors.OpError as error:
        return Answer(None, type(error).__name__, error.message)
    except ValueError as error:
        # While it builds a graph, TensorFlow makes a ValueError of this kind of error.
        if mode == "eager" or f"{op}: " not in str(error):
            return Answer(None, "ValueError", str(error))
        return Answer(None, "InvalidArgumentError", str(error))
    except Exception as error:
        return Answer(None, type(error).__name__, str(error))
