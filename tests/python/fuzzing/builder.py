"""Puts programs into TensorFlow graphs."""

import numpy as np
import tensorflow as tf

from fuzzing import frames, lists
from fuzzing.programs import RESOURCE_ASSIGNMENTS, VARIABLES, full, plain, split

v1 = tf.compat.v1
TYPES = {
    "float": tf.float32,
    "half": tf.float16,
    "int32": tf.int32,
    "bool": tf.bool,
    "resource": tf.resource,
    "variant": tf.variant,
}
# Nodes that Python has to make; all others are NodeDefs, imported many at a time.
PYTHON = {"Gradients", "Call", "While"}
# The attribute that has a node's type, where it is not T. None: the op has one type.
TYPE_ATTRIBUTE = dict.fromkeys(
    RESOURCE_ASSIGNMENTS
    + (
        "ReadVariableOp",
        "Placeholder",
        "TensorArrayV3",
        "TensorArrayReadV3",
        "TensorArrayGatherV3",
    ),
    "dtype",
)
LISTS = ("FromTensor", "Reserve", "GetItem", "SetItem", "Stack")
TYPE_ATTRIBUTE.update(dict.fromkeys(("TensorList" + op for op in LISTS), "element_dtype"))
TYPE_ATTRIBUTE.update(dict.fromkeys(("LoopCond", "LogicalAnd", "TensorArraySizeV3")), Range="Tidx")
FRAMES = {"Loop": frames.loop, "Sequence": frames.sequence, "ListSequence": lists.loop}
# Nodes that are done when a loop is.
ENDS = ("Exit", "TensorArrayGatherV3", "TensorListStack")

# A generator of its own for each value takes longer than the graph.
_RANDOM = np.random.RandomState(24).uniform(-1, 1, 1 << 15)


def value(description, dtype, noise=0.0, draw=0):
    """The array that a description of a value stands for.

    Args:
      description: {"value": numbers} or {"shape": sizes, "seed": number}, which is random.
      dtype: The name of a type.
      noise: The largest relative change of each number of a random value.
      draw: Which of many such changes.
    """
    kind = TYPES[dtype].as_numpy_dtype
    if "value" in description:
        return np.array(description["value"], kind)
    shape, first = description["shape"], description["seed"] % (_RANDOM.size // 2)
    count = int(np.prod(shape))
    array = _RANDOM[first : first + count].reshape(shape)
    if noise:
        first += 1 + draw
        array = array * (1 + noise * _RANDOM[first : first + count].reshape(shape))
    return array.astype(kind)


def built(nodes, *change):
    """The nodes of a program in a graph of their own: a Builder of this `noise` and `draw`."""
    with tf.Graph().as_default():
        builder = Builder(*change)
        builder.build(nodes)
    return builder


class Builder:
    """Nodes of a program in the current default graph.

    Attributes:
      graph: The graph.
      initializers: Names of the nodes that give variables their first values.
    """

    def __init__(self, noise=0.0, draw=0):
        self.graph = v1.get_default_graph()
        self.initializers = []
        self._change = noise, draw
        self._tensors = {}
        self._operations = {}
        self._segment = []
        self._aliases = {}
        self._last = {}

    def build(self, nodes):
        """Adds nodes, which may refer to those that are there."""
        for node in nodes:
            if node["op"] in PYTHON:
                self._flush()
                with tf.control_dependencies(self._awaited(node)):
                    outputs = getattr(self, "_" + node["op"].lower())(node)
                for k, tensor in enumerate(outputs):
                    self._tensors["{}:{}".format(node["name"], k)] = tensor
                # Each once: the importer miscounts some nodes that wait for the same one twice.
                made = dict.fromkeys(tensor.op for tensor in outputs)
                self._operations[node["name"]] = list(made)
            elif node["op"] in VARIABLES:
                self._variable(node)
            elif node["op"] in FRAMES:
                nodes, outputs = FRAMES[node["op"]](node)
                for inner in nodes:
                    self._add(inner)
                names = {"{}:{}".format(node["name"], k): full(t) for k, t in enumerate(outputs)}
                self._aliases.update(names)
                self._last[node["name"]] = [inner["name"] for inner in nodes if inner["op"] in ENDS]
            else:
                self._add(node)
        self._flush()

    def give(self, name, tensor):
        """Lets nodes to come refer to a tensor."""
        self._tensors[full(name)] = tensor
        self._operations[split(name)[0]] = [tensor.op]

    def tensor(self, name):
        key = self._aliases.get(full(name), full(name))
        if key in self._tensors:
            return self._tensors[key]
        return self.graph.get_tensor_by_name(key)

    def operations(self, name):
        """The operations that are done when a node is."""
        if name in self._operations:
            return self._operations[name]
        return [self.graph.get_operation_by_name(last) for last in self._last.get(name, [name])]

    def _awaited(self, node):
        return [op for name in node["after"] for op in self.operations(name)]

    def _add(self, node):
        """Adds a NodeDef to those that are imported next."""
        definition = v1.NodeDef(name=node["name"], op=node["op"])
        inputs = [self._aliases.get(full(t), full(t)) for t in node["inputs"]]
        awaited = [last for name in node["after"] for last in self._last.get(name, [name])]
        definition.input.extend(inputs + ["^" + name for name in awaited])
        dtype, attrs = node["dtype"], dict(node["attrs"])
        definition.device = attrs.pop("device", "")
        if node["op"] == "Const":
            array = value(attrs.pop("value"), dtype, *self._change)
            proto = definition.attr["value"].tensor
            proto.dtype = definition.attr["dtype"].type = TYPES[dtype].as_datatype_enum
            proto.tensor_content = array.tobytes()
            for size in array.shape:
                proto.tensor_shape.dim.add().size = size
        else:
            name = TYPE_ATTRIBUTE.get(node["op"], "T")
            if name is not None:
                definition.attr[name].type = TYPES[dtype].as_datatype_enum
        _count_inputs(definition, len(inputs))
        for name, setting in attrs.items():
            _set(definition.attr[name], setting)
        self._segment.append(definition)

    def _flush(self):
        """Imports the NodeDefs that wait for it."""
        inside = {node.name for node in self._segment}
        outside = {}
        for node in self._segment:
            inputs = []
            for name in node.input:
                if not name.startswith("^"):
                    if split(name)[0] not in inside:
                        outside[name] = self.tensor(name)
                    inputs.append(name)
                elif name[1:] in inside:
                    inputs.append(name)
                else:
                    for operation in self.operations(name[1:]):
                        outside["^" + operation.name] = _a_tensor(operation)
                        inputs.append("^" + operation.name)
            del node.input[:]
            node.input.extend(inputs)
        if self._segment:
            definition = v1.GraphDef(node=self._segment)
            definition.versions.producer = self.graph.graph_def_versions.producer
            tf.import_graph_def(definition, input_map=outside, name="")
        self._segment = []

    def _variable(self, node):
        name, dtype = node["name"], node["dtype"]
        resource = node["op"] == "ResourceVariable"
        definition = v1.NodeDef(name=name, op="VarHandleOp" if resource else "VariableV2")
        definition.attr["dtype"].type = TYPES[dtype].as_datatype_enum
        _set(definition.attr["shape"], node["shapes"][0])
        _set(definition.attr["shared_name"], name)
        self._segment.append(definition)
        start = plain("Const", name + "/start", [], dtype, value=node["attrs"]["start"])
        assign = "AssignVariableOp" if resource else "Assign"
        self._add(start)
        self._add(plain(assign, name + "/assign", [name, start["name"]], dtype))
        self.initializers.append(name + "/assign")

    def _values(self, node):
        """A node's inputs, for functions: they take no references."""
        tensors = [self.tensor(t) for t in node["inputs"]]
        return [tf.identity(t) if t.dtype.name.endswith("_ref") else t for t in tensors]

    def _gradients(self, node):
        of, wanted = node["attrs"]["of"], len(node["shapes"])
        tensors = [self.tensor(t) for t in node["inputs"]]
        ys, ends = tensors[:of], tensors[of:]
        zero = tf.UnconnectedGradients.ZERO
        xs = ends[:wanted]
        gradients = v1.gradients(ys, xs, stop_gradients=ends, unconnected_gradients=zero)
        # Where the gradient of an op on the way is none, TensorFlow 1.15 has nothing to return.
        return [tf.zeros_like(x) if dx is None else dx for x, dx in zip(xs, gradients)]

    def _call(self, node):
        attrs = node["attrs"]

        def body(*args):
            return _inner(attrs["body"], attrs["results"], ["arg"] * len(args), args)

        return tf.function(body, autograph=False)(*self._values(node))

    def _while(self, node):
        attrs, count = node["attrs"], len(node["shapes"])
        tensors = self._values(node)
        kinds = ["arg"] * count + ["cap"] * (len(tensors) - count)

        def body(step, *variables):
            # By other names than those of the nodes in the body.
            capture = v1.get_default_graph().capture
            captured = [capture(t, name=f"cap_{k}") for k, t in enumerate(tensors[count:])]
            values = list(variables) + captured
            results = _inner(attrs["body"], attrs["results"], kinds, values)
            for result, shape in zip(results, node["shapes"]):
                result.set_shape(shape)  # TensorFlow knows less, and wants to know.
            return [step + 1] + results

        return tf.while_loop(
            lambda step, *_: step < attrs["trips"],
            body,
            [tf.constant(0)] + tensors[:count],
            parallel_iterations=attrs["parallel"],
        )[1:]


def _a_tensor(operation):
    """A tensor that is there when an operation is done: imported nodes wait for tensors."""
    if operation.outputs:
        return operation.outputs[0]
    with tf.control_dependencies([operation]):
        return tf.constant(0)


def _inner(nodes, results, kinds, tensors):
    """Nodes of a function in its graph; the values are arg_0, arg_1, ..., cap_0, cap_1, ..."""
    builder, numbers = Builder(), {}
    for kind, tensor in zip(kinds, tensors):
        number = numbers[kind] = numbers.get(kind, -1) + 1
        builder.give(f"{kind}_{number}", tensor)
    builder.build(nodes)
    return [builder.tensor(t) for t in results]


def _count_inputs(definition, inputs):
    op = definition.op
    if op in ("AddN", "Merge", "Pack"):
        definition.attr["N"].i = inputs
    elif op == "ConcatV2":
        definition.attr["N"].i = inputs - 1
        definition.attr["Tidx"].type = tf.int32.as_datatype_enum
    elif op in ("TensorListFromTensor", "TensorListReserve"):
        definition.attr["shape_type"].type = tf.int32.as_datatype_enum
    elif op in ("Slice", "StridedSlice"):
        definition.attr["Index"].type = tf.int32.as_datatype_enum


def _set(attribute, setting):
    if isinstance(setting, bool):
        attribute.b = setting
    elif isinstance(setting, int):
        attribute.i = setting
    elif isinstance(setting, float):
        attribute.f = setting
    elif isinstance(setting, str):
        attribute.s = setting.encode()
    else:
        attribute.shape.SetInParent()
        for size in setting:
            attribute.shape.dim.add().size = size
