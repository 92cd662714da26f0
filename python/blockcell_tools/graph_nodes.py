"""Finds the nodes of recurrent ops in a graph's file, with shapes, types, options and devices."""

from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Union

import numpy as np

from blockcell import tf_internals
from blockcell.op_table import OPS
from blockcell_tools import cudnn_nodes, cudnn_verification, keras_nodes
from blockcell_tools.verification import Case

KNOWN = (*OPS, *cudnn_verification.OPS)
"""The ops whose nodes are found."""


class GraphFileError(Exception):
    """The file cannot be read as a graph; says what was tried."""


class Node(NamedTuple):
    """A node that calls one of the ops, or a layer of Keras that becomes such a call."""

    name: str
    function: Optional[str]
    """The function in whose body it is; None in the graph itself."""
    op: str
    dtype: str
    attributes: Dict[str, Any]
    label: str
    """The attribute `_kernel`."""
    device: str
    """As the graph says; empty if it leaves it to TensorFlow."""
    shapes: Dict[str, Optional[List[Optional[int]]]]
    """Of each input; None where nothing is known, also of a single dimension."""
    kept: str = ""
    """Why Keras's own path runs it, a clause; empty if it does not."""


def read(file: Union[str, Path]) -> List[Node]:
    """Reads the nodes of recurrent ops in a file, those in bodies of functions too.

    Args:
      file: A GraphDef or a MetaGraph, binary or as text (.pb, .pbtxt, .meta), a SavedModel: its
        folder or its saved_model.pb, or a file of Keras's (.keras, .h5), whose layers count.

    Raises:
      GraphFileError: It is none of these.
    """
    import tensorflow as tf

    from blockcell import loader

    if keras_nodes.is_file(file):
        return _layers(file)
    if not loader.info()["loaded"]:
        loader.load(take_over=False)  # Graphs with the library's own ops need it to be read.
    nodes = []
    for meta_graph in meta_graphs(file):
        graph_def = meta_graph.graph_def
        with tf.Graph().as_default() as graph:
            try:
                tf.import_graph_def(without_colocation(graph_def), name="")
            except (ValueError, KeyError) as error:
                first = str(error).splitlines()[0]
                raise GraphFileError(f"the graph in {file} cannot be read: {first}") from None
        nodes += [_node(op, None) for op in graph.get_operations() if op.type in KNOWN]
        for function in graph_def.library.function:
            if any(node.op in KNOWN for node in function.node_def):
                nodes += _nodes_of_function(function)
    return nodes


def meta_graphs(file: Union[str, Path]) -> List[Any]:
    """The MetaGraphs in a file; one with nothing else in it for a GraphDef.

    Raises:
      GraphFileError: As of `read`.
    """
    import tensorflow as tf

    path = Path(file)
    if path.is_dir():
        found = [path / name for name in ("saved_model.pb", "saved_model.pbtxt")]
        path = next((one for one in found if one.exists()), path)
    if not path.is_file():
        raise GraphFileError(f"there is no file {path}, or no saved_model.pb in that folder")
    content = path.read_bytes()
    # A file of one kind may parse as another: the names tell the order to try them in.
    kinds = {
        "graph": (
            tf.compat.v1.GraphDef,
            lambda m: [tf.compat.v1.MetaGraphDef(graph_def=m)],
            lambda m: len(m.node),
        ),
        "meta": (
            tf.compat.v1.MetaGraphDef,
            lambda m: [m],
            lambda m: len(m.graph_def.node),
        ),
        "saved": (
            tf_internals.saved_model(),
            lambda m: list(m.meta_graphs),
            lambda m: len(m.meta_graphs),
        ),
    }
    order = ["graph", "meta", "saved"]
    if path.name.startswith("saved_model"):
        order.reverse()
    elif path.name.endswith((".meta", ".meta.txt")):
        order = ["meta", "graph", "saved"]
    for kind in order:
        make, graphs, size = kinds[kind]
        message = None if make is None else _parsed(make(), content)
        if message is not None and size(message):
            return graphs(message)
    raise GraphFileError(f"{path} is not a GraphDef, MetaGraph or SavedModel, in binary or as text")


def _parsed(message: Any, content: bytes) -> Any:
    """The message, or None if it cannot be parsed."""
    from google.protobuf import text_format
    from google.protobuf.message import DecodeError

    try:
        message.ParseFromString(content)
        return message
    except (DecodeError, RuntimeError):
        pass
    try:
        return text_format.Parse(content.decode("utf-8"), message)
    except (UnicodeDecodeError, text_format.ParseError):
        return None


def without_colocation(graph_def: Any) -> Any:
    """A copy without colocation, whose targets importing would look for."""
    copy = type(graph_def)()
    copy.CopyFrom(graph_def)
    for node in copy.node:
        if "_class" in node.attr:
            del node.attr["_class"]
    return copy


def _nodes_of_function(function: Any) -> List[Node]:
    """The nodes in a function's body; shapes as far as the body tells them."""
    name = function.signature.name
    bare = [_bare_node(node, name) for node in function.node_def if node.op in KNOWN]
    graph_of = tf_internals.graph_of_functions()
    if graph_of is None:
        return bare
    try:
        graph = graph_of(function)
        return [_node(op, name) for op in graph.get_operations() if op.type in KNOWN]
    except Exception:  # Of any kind: bodies call other functions, which may not be there.
        return bare


def _node(op: Any, function: Optional[str]) -> Node:
    """A node of an imported graph."""
    shapes: Dict[str, Any] = {}
    names = _input_names(op.type)
    for name, tensor in zip(names, op.inputs):
        shape = tensor.shape
        shapes[name] = None if shape.rank is None else shape.as_list()
    definition = op.node_def
    return _from_definition(definition, function, shapes)


def _bare_node(node: Any, function: Optional[str]) -> Node:
    return _from_definition(node, function, dict.fromkeys(_input_names(node.op)))


def _input_names(op: str) -> List[str]:
    return list(OPS[op].inputs) if op in OPS else cudnn_nodes.input_names(op)


def _from_definition(node: Any, function: Optional[str], shapes: Dict[str, Any]) -> Node:
    import tensorflow as tf

    attributes = {}
    of_op = OPS[node.op].attributes if node.op in OPS else cudnn_nodes.ATTRIBUTES
    for name in of_op:
        if name in node.attr:
            value = node.attr[name]
            found = getattr(value, value.WhichOneof("value"))
            attributes[name] = found.decode() if isinstance(found, bytes) else found
    dtype = tf.as_dtype(node.attr["T"].type).name if "T" in node.attr else "float32"
    label = node.attr["_kernel"].s.decode() if "_kernel" in node.attr else ""
    return Node(node.name, function, node.op, dtype, attributes, label, node.device, shapes)


def sizes_of(node: Node) -> Dict[str, Optional[int]]:
    """batch, input_size, cell_size and time, as far as the inputs' shapes tell them."""
    if node.kept:
        x, h_prev = node.shapes["x"] or [None], node.shapes["h_prev"] or [None]
        return {"time": None, "batch": None, "input_size": x[-1], "cell_size": h_prev[-1]}
    if node.op not in OPS:
        return cudnn_nodes.sizes(node.shapes, node.attributes)
    sizes: Dict[str, Optional[int]] = dict.fromkeys(("batch", "input_size", "cell_size"))
    if OPS[node.op].is_sequence:
        sizes["time"] = None
    for name, tensor in OPS[node.op].inputs.items():
        shape = node.shapes.get(name)
        if shape is None or len(shape) != len(tensor.shape):
            continue
        for symbol, size in zip(tensor.shape, shape):
            if size is None:
                continue
            factor, _, factor_symbol = symbol.rpartition(" * ")
            symbol = factor_symbol if factor.isdigit() else symbol
            if symbol in sizes and sizes[symbol] is None:
                if name in ("wci", "wcf", "wco", "b_hc"):
                    continue  # May be of any length.
                sizes[symbol] = size // int(factor) if factor.isdigit() else size
    weights = node.shapes.get("w_c") or node.shapes.get("w")
    if sizes["input_size"] is None and sizes["cell_size"] and weights and weights[0]:
        sizes["input_size"] = weights[0] - sizes["cell_size"]
    return sizes


def case_of(node: Node, batch: int, time: int) -> Optional[Case]:
    """The call that a node makes, with these sizes where the graph leaves them open.

    Returns:
      None if the sizes of the weights are not known.
    """
    if node.kept:
        return None
    sizes = sizes_of(node)
    sizes["batch"] = batch if sizes["batch"] is None else sizes["batch"]
    if "time" in sizes:
        sizes["time"] = time if sizes["time"] is None else sizes["time"]
    known = {name: size for name, size in sizes.items() if size is not None}
    if len(known) < len(sizes) or node.dtype not in _types(node.op):
        return None
    attributes = dict(node.attributes)
    if node.op not in OPS:
        attributes = cudnn_nodes.attributes_of_case(attributes, known)
    return Case(node.op, node.dtype, attributes, known)


def _types(op: str) -> Sequence[str]:
    """The types of an op's kernels, as NumPy names them."""
    if op not in OPS:
        return cudnn_verification.TYPES
    return [np.dtype(dtype).name for dtype in OPS[op].dtypes]


def why_not(node: Node) -> Optional[str]:
    """Why a node does not run on the library's kernel once it is loaded; None if it does."""
    import tensorflow as tf

    if node.kept:
        return node.kept
    if "GPU" in node.device.upper() or "TPU" in node.device.upper():
        return "the graph places it on a device other than a CPU"
    if node.label not in ("", "blockcell"):
        return f"its attribute _kernel requests the kernel {node.label!r}"
    if node.op not in OPS:
        return _why_not_of_cudnn(node)
    own = OPS[node.op].function is not None
    if node.dtype not in _types(node.op):
        return f"there is no kernel for {node.dtype}"
    if node.function and not own and not node.label and tf.__version__.startswith("1."):
        return "in TensorFlow 1.15, function bodies run on it only if all devices are CPUs"
    return None


def _why_not_of_cudnn(node: Node) -> Optional[str]:
    from blockcell import loader

    if node.dtype not in cudnn_verification.TYPES:
        return f"there is no kernel for {node.dtype}"
    if loader.info()["cudnn"] == "off":
        return "with BLOCKCELL_CUDNN=0, or a GPU, the library has no kernels of cuDNN's ops"
    return None


def _layers(file: Union[str, Path]) -> List[Node]:
    """The layers of a file of Keras's, as the calls that they become."""
    if not Path(file).is_file():
        raise GraphFileError(f"there is no file {file}")
    try:
        layers = keras_nodes.read(file)
    except keras_nodes.KerasFileError as error:
        raise GraphFileError(f"Keras cannot read {file}: {error}") from None
    return [_of_layer(layer) for layer in layers]


def _of_layer(layer: keras_nodes.Layer) -> Node:
    shapes: Dict[str, Any] = {
        "x": [None, None, layer.input_size],
        "h_prev": [None, layer.cell_size],
    }
    name, op, dtype, attributes, kept = layer[:5]
    return Node(name, None, op, dtype, attributes, "", "", shapes, kept)
