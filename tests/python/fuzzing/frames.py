"""Loops of TensorFlow 1 as the nodes that they are made of.

Each function takes a node of a program and returns nodes, and the tensors that are its outputs.
"""

import itertools

from fuzzing.programs import plain


def loop(node):
    """A loop that counts to `trips`."""
    attrs, count = node["attrs"], len(node["shapes"])
    frame = Frame(node)
    trips = frame.number("trips", attrs["trips"])
    frame.variables([("i", frame.number("zero", 0), "int32", "next_i")])
    frame.variables(
        (f"v{k}", node["inputs"][k], node["dtype"], attrs["results"][k]) for k in range(count)
    )
    frame.condition([trips])
    body = {f"arg_{k}": frame.value(f"v{k}") for k in range(count)}
    body.update(frame.captured(node["inputs"][count:]))
    frame.body(attrs["body"], body)
    frame.close(body)
    return frame.nodes, [frame.exit(f"v{k}") for k in range(count)]


def sequence(node):
    """A loop that reads a step of x in each round, and writes what comes out: see `sequences`."""
    attrs, dtype = node["attrs"], node["dtype"]
    frame, states = Frame(node), attrs["states"]
    x, starts = node["inputs"][0], node["inputs"][1 : 1 + states]
    others = node["inputs"][1 + states :]
    captured, lengths = others[: attrs["captured"]], others[attrs["captured"] :]
    zero, one = frame.number("zero", 0), frame.number("one", 1)
    time = frame.time(x, attrs["time"])
    read, filled = _filled(frame, x, time, attrs)
    variables = [("i", zero, "int32", "next_i")]
    variables += [
        (f"v{k}", start, dtype, result)
        for k, (start, result) in enumerate(zip(starts, attrs["results"]))
    ]
    written = attrs["written"]
    if written:
        out = frame.array("out", time, attrs["out_element"])
        variables.append(("flow", out + ":1", "float", "write"))
    frame.variables(variables)
    bounds = [time] if attrs["bound"] is None else [time, frame.number("bound", attrs["bound"])]
    frame.condition(bounds if attrs["both"] else bounds[-1:])
    body = {f"arg_{k}": frame.value(f"v{k}") for k in range(states)}
    body.update(frame.captured(captured))
    index = frame.value("i")
    handle, flow = (
        frame.enter("in_handle", read, "resource"),
        frame.enter("in_flow", filled, "float"),
    )
    body["x_t"] = frame.add("TensorArrayReadV3", "x_t", [handle, index, flow])
    for k, tensor in enumerate(lengths):
        entered = frame.enter(f"lengths_{k}", tensor, "int32")
        body[f"ended_{k}"] = frame.add("GreaterEqual", f"ended_{k}", [index, entered], "int32")
    frame.body(attrs["body"], body)
    outputs = [frame.exit(f"v{k}") for k in range(states)]
    if not written:
        frame.close(body)
        return frame.nodes, outputs
    handle = frame.enter("out_handle", out, "resource")
    inputs = [handle, index, frame.renamed(written, body), frame.value("flow")]
    body["write"] = frame.add("TensorArrayWriteV3", "write", inputs)
    frame.close(body)
    flow = frame.exit("flow")
    size = frame.add("TensorArraySizeV3", "size", [out, flow], None)
    indices = frame.add("Range", "out_range", [zero, size, one], "int32")
    shape = _element(attrs["out_element"])
    gathered = frame.add("TensorArrayGatherV3", "gather", [out, indices, flow], **shape)
    return frame.nodes, [*outputs, gathered]


def _filled(frame, x, time, attrs):
    """The array that is read, and its flow after x was put into it."""
    array = frame.array("in", time, attrs["in_element"])
    inputs = [frame.number("range_from", 0), time, frame.number("range_by", 1)]
    indices = frame.add("Range", "in_range", inputs, "int32")
    inputs = [array, indices, frame.awaited(x), array + ":1"]
    return array, frame.add("TensorArrayScatterV3", "filled", inputs)


def _element(sizes):
    """The attribute that says what is known of the elements of an array."""
    return {} if sizes is None else {"element_shape": sizes}


class Frame:
    """The nodes of a loop, which begin with the name of the node that they stand for.

    Attributes:
      nodes: The nodes.
    """

    def __init__(self, node):
        self.nodes = []
        self._node, self._prefix = node, node["name"] + "/"
        parallel = node["attrs"]["parallel"]
        self._frame = {"frame_name": self._prefix, "parallel_iterations": parallel}
        self._numbers = itertools.count()
        self._variables = []

    def add(self, op, short, inputs, dtype="", after=(), **attrs):
        """Adds a node, of the type of the program unless another is said."""
        dtype = self._node["dtype"] if dtype == "" else dtype
        self.nodes.append(plain(op, self._prefix + short, inputs, dtype, after, **attrs))
        return self._prefix + short

    def number(self, short, value, inside=False):
        """A constant, outside of the loop or in a round."""
        after = [self._prefix + "pivot"] if inside else []
        return self.add("Const", short, [], "int32", after, value={"value": value})

    def time(self, x, number):
        """The number of steps: a constant, or that of x when it runs."""
        if number is not None:
            return self.number("time", number)
        shape = self.add("Shape", "shape", [x])
        places = [self.number(f"index_{k}", [k]) for k in (0, 1)]
        inputs = [shape, *places, places[1]]
        return self.add("StridedSlice", "time", inputs, "int32", shrink_axis_mask=1)

    def array(self, short, size, element):
        attrs = {"dynamic_size": False, "clear_after_read": True, "identical_element_shapes": True}
        attrs.update(_element(element), tensor_array_name=short)
        return self.add("TensorArrayV3", short, [size], after=self._node["after"], **attrs)

    def awaited(self, tensor, dtype=""):
        """The tensor behind what the loop waits for."""
        if not self._node["after"]:
            return tensor
        # Enter itself cannot wait: TensorFlow 1.15's optimizers end the process.
        short = f"wait_{next(self._numbers)}"
        return self.add("Identity", short, [tensor], dtype, self._node["after"])

    def enter(self, short, tensor, dtype=""):
        """A tensor that is the same in every round."""
        awaited = tensor if dtype == "resource" else self.awaited(tensor, dtype)
        return self.add("Enter", short, [awaited], dtype, is_constant=True, **self._frame)

    def captured(self, tensors):
        """Such tensors, by their names in the body."""
        return {f"cap_{k}": self.enter(f"cap_{k}", tensor) for k, tensor in enumerate(tensors)}

    def variables(self, variables):
        """Adds loop variables: each name, first value, type and name of the next value."""
        for short, start, dtype, result in variables:
            self._variables.append((short, dtype, result))
            self.add("Enter", short + "/enter", [self.awaited(start, dtype)], dtype, **self._frame)
            merged = [f"{self._prefix}{short}/{end}" for end in ("enter", "next")]
            self.add("Merge", short + "/merge", merged, dtype)

    def condition(self, bounds):
        """Goes on while the counter is less than all of some numbers."""
        counter, tests = self._prefix + "i/merge", []
        for k, bound in enumerate(bounds):
            limit = self.enter(f"limit_{k}", bound, "int32")
            tests.append(self.add("Less", f"less_{k}", [counter, limit], "int32"))
        test = tests[0]
        if len(tests) > 1:
            test = self.add("LogicalAnd", "and", tests, None)
        condition = self.add("LoopCond", "cond", [test], None)
        for short, dtype, _ in self._variables:
            merged = f"{self._prefix}{short}/merge"
            self.add("Switch", short + "/switch", [merged, condition], dtype)
            self.add("Exit", short + "/exit", [f"{self._prefix}{short}/switch:0"], dtype)

    def value(self, short):
        """A variable in a round."""
        return f"{self._prefix}{short}/switch:1"

    def exit(self, short):
        """A variable after the loop."""
        return f"{self._prefix}{short}/exit"

    def body(self, nodes, given):
        """Adds the nodes of a round, and counts."""
        pivot = self.add("Identity", "pivot", [self.value("i")], "int32")
        for node in nodes:
            inputs = [self.renamed(t, given) for t in node["inputs"]]
            after = [self._prefix + awaited for awaited in node["after"]]
            # A node without inputs would run outside of the loop.
            after += [pivot] if not inputs else []
            name = self._prefix + node["name"]
            self.nodes.append(dict(node, name=name, inputs=inputs, after=after))
        step = self.add("Const", "step", [], "int32", [pivot], value={"value": 1})
        self.add("Add", "next_i", [self.value("i"), step], "int32")

    def close(self, given):
        """Leads the next values back."""
        for short, dtype, result in self._variables:
            self.add("NextIteration", short + "/next", [self.renamed(result, given)], dtype)

    def renamed(self, tensor, given):
        """A tensor of the body in the graph."""
        return given.get(tensor) or self._prefix + tensor
