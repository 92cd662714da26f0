"""Adds nodes to a program and keeps it a program with one meaning.

What reads the buffer of a variable is ordered against everything that assigns to it, by control
edges from one to the other; a path over other nodes would be cut by a feed. A ConcatV2 of a ref
variable is a snapshot, so what reads the ConcatV2 is free.
"""

import collections

from fuzzing.programs import REF_ASSIGNMENTS, full, shares_buffer

# What may run on another device: it neither reads a variable nor steers what is alive.
MOVABLE = ("MatMul", "ConcatV2", "Slice", "BiasAddGrad", "AddN", "Tanh", "LSTMBlockCellGrad")

Value = collections.namedtuple("Value", "tensor shape")


class Maker:
    """A program that grows.

    Attributes:
      random: A random.Random.
      dtype: The type of the program's values.
      nodes: The nodes so far.
      values: Tensors of that type, in the order of their making.
      guard: Control inputs of every node to come.
      fed: Whether there may be placeholders: not in the body of a loop or a function.
      devices: Whether some nodes are on another device than the others.
      add_op: "Add" or "AddV2".
      bias_op: What adds the biases of plain cells: "BiasAdd", `add_op`, or None for cells
        without a bias.
    """

    def __init__(self, random, dtype, fed=True):
        self.random, self.dtype, self.fed = random, dtype, fed
        self.devices = fed and random.random() < 0.1
        self.add_op = random.choice(["Add", "AddV2"])
        self.bias_op = random.choice(["BiasAdd", "BiasAdd", self.add_op, None])
        self.nodes, self.values, self.guard = [], [], []
        self.variables = {}
        self._numbers = collections.Counter()
        self._buffers = {}  # The variables whose buffers a tensor shares.
        self._readers = collections.defaultdict(list)
        self._assigned = {}

    def chance(self, share):
        return self.random.random() < share

    def add(self, op, inputs, shapes, after=(), dtype=None, hidden=False, **attrs):
        """Adds a node; returns its outputs."""
        short = op.lower()
        self._numbers[short] += 1
        name = f"{short}_{self._numbers[short]}"
        tensors = [getattr(value, "tensor", value) for value in inputs]
        node = {"name": name, "op": op, "inputs": tensors, "after": []}
        node.update(dtype=dtype or self.dtype, shapes=[list(s) for s in shapes], attrs=attrs)
        buffers = set().union(*[self._buffers.get(full(t), set()) for t in tensors])
        # A feed cuts what a placeholder waits for.
        awaited = list(after) + (self.guard if op != "Placeholder" else [])
        awaited += [self._assigned[v] for v in sorted(buffers) if v in self._assigned]
        node["after"] = sorted(set(awaited), key=awaited.index)
        for variable in buffers:
            self._readers[variable].append(name)
        if self.devices and op in MOVABLE and not buffers and self.chance(0.1):
            attrs["device"] = "/cpu:1"
        self.nodes.append(node)
        outputs = [Value(name if k == 0 else f"{name}:{k}", tuple(s)) for k, s in enumerate(shapes)]
        if shares_buffer(node):
            for output in outputs:
                self._buffers[full(output.tensor)] = buffers
        if node["dtype"] == self.dtype and not hidden:
            self.values += outputs
        return outputs

    def one(self, op, inputs, of_shape, after=(), **attrs):
        """Adds a node that has one output, or one that is of use."""
        return self.add(op, inputs, [of_shape], after, **attrs)[0]

    def number(self):
        return self.random.randrange(1 << 20)

    def array(self, shape):
        """The description of a random value."""
        return {"shape": list(shape), "seed": self.number()}

    def integers(self, value, after=()):
        """A constant of int32."""
        shape = [len(value)] if isinstance(value, list) else []
        return self.one("Const", [], shape, after, dtype="int32", value={"value": value})

    def placeholder(self, shape):
        attrs = {"shape": list(shape)} if self.chance(0.3) else {}
        return self.one("Placeholder", [], shape, **attrs)

    def constant(self, shape):
        return self.one("Const", [], shape, value=self.array(shape))

    def variable(self, shape, resource):
        """A variable: its handle, or its value by reference."""
        guard, self.guard = self.guard, []
        op = "ResourceVariable" if resource else "Variable"
        made = self.one(op, [], shape, hidden=resource, start=self.array(shape))
        self.guard = guard
        self.variables[made.tensor] = (made, resource)
        if not resource:
            self._buffers[full(made.tensor)] = {made.tensor}
        return made

    def read(self, made, resource):
        """A value of a variable."""
        if not resource:
            return made if self.chance(0.6) else self.one("Identity", [made], made.shape)
        after = [self._assigned[made.tensor]] if made.tensor in self._assigned else []
        value = self.one("ReadVariableOp", [made], made.shape, after)
        self._readers[made.tensor].append(value.tensor)
        return value

    def assign(self, name, value):
        """Changes a variable after all that reads it so far, and before all that reads it later."""
        made, resource = self.variables[name]
        value = self.snapshot(value)
        ops = ("AssignVariableOp", "AssignAddVariableOp") if resource else REF_ASSIGNMENTS
        op = self.random.choice(ops)
        before = [n for n in self._readers[name] + [self._assigned.get(name)] if n]
        if resource:
            self.add(op, [made, value], [], before)
        else:
            self._buffers.pop(full(name))  # It does not wait for itself.
            hidden = self.chance(0.7)
            output = self.one(op, [made, value], made.shape, before, hidden=hidden)
            self._buffers[full(name)] = self._buffers[full(output.tensor)] = {name}
        self._assigned[name] = self.nodes[-1]["name"]
        self._readers[name] = []
        return self._assigned[name]

    def shares_buffer(self, value):
        """Whether a value is the buffer of a ref variable, which can change."""
        return bool(self._buffers.get(full(value.tensor)))

    def snapshot(self, value):
        """The value, or where that can change a function of what it is now."""
        return self.one("Tanh", [value], value.shape) if self.shares_buffer(value) else value

    def of_shape(self, shape):
        return [value for value in self.values if value.shape == tuple(shape)]
