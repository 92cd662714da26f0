"""Reports what the library's graph passes do to the graphs of a file, without running them.

A session prepares a step, but does not run it. TensorFlow then prunes and optimizes the graph as
for a real step, and calls the passes, which log what they do to stderr. This happens in a process
of its own, because the library reads its environment variables when it is loaded.
"""

import logging
import re
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Union

from blockcell import tf_internals
from blockcell_tools import processes

_LINE = re.compile(
    r"blockcell: (?:graph \d+: )?"
    r"(?:(\S+) becomes (\S+) \(parts: (\d+)\)|(\S+) \((\S+)\) is not rewritten)(.*)"
)


class Place(NamedTuple):
    """A node that the passes replace, or could have replaced."""

    name: str
    becomes: Optional[str]
    """The op that replaces it; None if it is not rewritten."""
    parts: int
    """The number of products, sums or slices that the new op computes."""
    reason: Optional[str]
    """Why it is not rewritten, or why the rest is not."""


class PlanError(Exception):
    """The passes did not run; the message gives the reason."""


def read(file: Union[str, Path], targets: Sequence[str] = ()) -> List[Place]:
    """Returns what the passes do to the graphs in a file, and to each function body in it.

    Args:
      file: As for `graph_nodes.read`.
      targets: Names of the operations that define a step. By default those of the collection
        `train_op`, or else all operations that depend on a cell and have no consumer.

    Raises:
      PlanError: TensorFlow does not accept the graph.
    """
    switches = ["BLOCKCELL_REWRITE", "BLOCKCELL_OVERRIDE"]
    process = processes.run_module(
        "blockcell_tools.graph_plan", [str(file), *targets], switches, BLOCKCELL_LOG="1"
    )
    if process.returncode:
        raise PlanError(processes.last_line(process))
    for line in process.stderr.splitlines():
        if line.startswith(tf_internals.WARNING):
            logging.getLogger("blockcell").warning("%s", line)
    return list(places(process.stderr))


def places(log: str) -> Iterator[Place]:
    """Parses the places from a log."""
    for found in _LINE.finditer(log):
        becomes, op, parts, kept, _, rest = found.groups()
        reason = rest.partition(": ")[2] or None
        yield Place(becomes or kept, op, int(parts or 0), reason)


def lines(found: Sequence[Place]) -> Iterator[str]:
    """Describes what the passes do, with equal places combined."""
    groups: Dict[Any, List[Place]] = {}
    for place in found:
        reason = re.sub(r"\S*[/_]\S*", "", place.reason or "")  # Without the names of nodes.
        groups.setdefault((place.becomes, place.parts, reason), []).append(place)
    for group in groups.values():
        place, names = group[0], and_more([each.name for each in group])
        if place.becomes is None:
            yield f"Not rewritten: {names}: {place.reason}"
        else:
            but = f"; the rest is not rewritten: {place.reason}" if place.reason else ""
            yield f"Becomes {place.becomes} (parts: {place.parts}): {names}{but}"


def and_more(names: Sequence[str]) -> str:
    """The first of some names, and how many others there are."""
    return f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else names[0]


def main(arguments: Sequence[str]) -> None:
    """Gets a session ready for a step of each graph in a file."""
    import tensorflow as tf

    from blockcell import loader
    from blockcell_tools import graph_nodes

    loader.load()
    file, targets = arguments[0], list(arguments[1:])
    for meta_graph in graph_nodes.meta_graphs(file):
        graph_def = graph_nodes.without_colocation(meta_graph.graph_def)
        with tf.Graph().as_default() as graph:
            tf.import_graph_def(graph_def, name="")
            _prepare(graph, targets or targets_of(graph, meta_graph))
            of_layers = _of_layers(graph_def.library.function)
            for function in graph_def.library.function:
                if function.signature.name not in of_layers:
                    _prepare_body(function)


def train_ops(graph: Any, meta_graph: Any) -> List[str]:
    """The operations that train, as far as the MetaGraph's collection names them."""
    trained = list(meta_graph.collection_def["train_op"].node_list.value)
    names = {operation.name for operation in graph.get_operations()}
    return trained if names.issuperset(trained) else []


def targets_of(graph: Any, meta_graph: Any, others: Sequence[str] = ()) -> List[str]:
    """The operations of a step, by default.

    Args:
      graph: A graph.
      meta_graph: What it was imported from.
      others: Ops that count as cells, beside those that the passes look for.
    """
    trained = train_ops(graph, meta_graph)
    if trained:
        return trained
    return [operation.name for operation in _after_cells(graph, others) if not _after(operation)]


def _prepare_body(function: Any) -> None:
    """The same for a function's body with cells, if it can be looked at alone."""
    graph_of = tf_internals.graph_of_functions()
    if graph_of is None or not any(_may_be_of_cell(node.op) for node in function.node_def):
        return
    try:
        body = graph_of(function)
        _prepare(body, [output.op.name for output in body.outputs])
    except Exception as error:  # Of any kind: bodies call other functions, which may not be there.
        name, first = function.signature.name, str(error).splitlines()[0]
        line = f"{name} (function) is not rewritten: its body is not a complete graph: {first}"
        print(f"blockcell: graph 0: {line}", file=sys.stderr)


def _is_layer(function: Any) -> bool:
    """Whether Keras 2 wrote it for a layer, in one of two ways, among which TensorFlow chooses."""
    return "api_implements" in function.attr


def _of_layers(functions: Sequence[Any]) -> Set[str]:
    """The names of functions that Keras 2 wrote for layers, and of those that these use."""
    used = {
        function.signature.name: {
            attribute.func.name
            for node in function.node_def
            for attribute in node.attr.values()
            if attribute.HasField("func")
        }
        for function in functions
    }
    names = [function.signature.name for function in functions if _is_layer(function)]
    for name in names:  # Grows while it is read.
        names += used.get(name, set()).difference(names)
    return set(names)


def _may_be_of_cell(op: str) -> bool:
    """Whether nodes of an op may be a block cell's or a plain cell's, which splits its gates."""
    from blockcell.op_table import OPS

    return op in OPS or op == "Split"


def _after_cells(graph: Any, others: Sequence[str]) -> List[Any]:
    """All operations that depend on a cell, and the cells', or on calls with layers of Keras 2."""
    has_layers = any(map(_is_layer, graph.as_graph_def().library.function))
    found = [
        one
        for one in graph.get_operations()
        if _may_be_of_cell(one.type)
        or one.type in others
        or (has_layers and one.type.endswith("PartitionedCall"))
    ]
    seen = set(found)
    for operation in found:  # Grows while it is read.
        for after in _after(operation):
            if after not in seen:
                seen.add(after)
                found.append(after)
    return found


def _after(operation: Any) -> List[Any]:
    """The operations that depend on one."""
    consumers = [consumer for output in operation.outputs for consumer in output.consumers()]
    return consumers + tf_internals.waiting_for(operation)


def _prepare(graph: Any, targets: List[str]) -> None:
    """Makes TensorFlow prune, optimize and rewrite a graph as for a step, without running it."""
    import tensorflow as tf

    if not targets:
        return
    config = tf.compat.v1.ConfigProto(device_count={"GPU": 0}, allow_soft_placement=True)
    with tf.compat.v1.Session(graph=graph, config=config) as session:
        tf_internals.prepare_step(session, targets)


if __name__ == "__main__":
    main(sys.argv[1:])
