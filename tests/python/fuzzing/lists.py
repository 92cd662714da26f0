"""Loops over a sequence as Keras 3 makes them, often with something in the way.

Their arrays are lists, which are values. The steps are small ops, with a product for x and one for
the state.
"""

from fuzzing import cells, sequences
from fuzzing.frames import Frame
from fuzzing.loops import inner


def sequence(maker, batch, size, cell):
    """One layer in a loop: the last states, and the outputs, or the last one."""
    random = maker.random
    time = random.choice([0, 1, 1, 2, 2, 3, 4])
    gates, biases = random.choice([(4, 1), (3, 2)])
    states = [(batch, cell)] * (2 if gates == 4 else 1)
    x = cells.source(maker, (time, batch, size), 0.9)
    starts = [sequences.start(maker, shape) for shape in states]
    captured = [cells.weights(maker, (rows, gates * cell)) for rows in (size, cell)]
    captured += [cells.weights(maker, (gates * cell,)) for _ in range(biases)]
    masked = maker.chance(0.4)
    if masked:
        starts.append(sequences.start(maker, (batch, cell)))
        states.append((batch, cell))
        captured.append(cells.zeros(maker, (batch, cell)))
    round_ = _Round(maker, states, captured, size, masked)
    last_only = maker.chance(0.4)
    shapes = [start.shape if time == 0 else shape for start, shape in zip(starts, states)]
    shapes.append((1 if last_only else time, batch, cell))
    mask = [_mask(maker, (time, batch, 1))] if masked else []
    return maker.add(
        "ListSequence",
        [x, *starts, *captured, *mask],
        shapes,
        states=len(starts),
        captured=len(captured),
        time=time if maker.chance(0.4) else None,
        bound=random.randint(0, time + 1) if maker.chance(0.2) else None,
        both=maker.chance(0.7),
        in_element=random.choice([[-1, size], [batch, size], [-1, -1], -1]),
        out_element=random.choice([[-1, cell], [batch, cell], [-1, -1], -1]),
        keeps=maker.chance(0.5),
        last_only=last_only,
        parallel=random.choice([1, 10, 32]),
        body=round_.body.nodes,
        results=round_.results,
        written=round_.written,
    )


def _mask(maker, shape):
    time, batch, _ = shape
    rows = [[[maker.chance(0.6)] for _ in range(batch)] for _ in range(time)]
    value = {"value": rows} if time else {"shape": list(shape), "seed": 0}
    return maker.one("Const", [], shape, dtype="bool", value=value)


class _Round:
    """The nodes of a round, the next states, and what is written to the list."""

    def __init__(self, maker, states, captured, size, masked):
        self._maker, self._masked = maker, masked
        shapes = [value.shape for value in captured]
        self.body, given = inner(maker, states + shapes, "arg")
        count = len(states)
        self._captured = [cells.argument(f"cap_{k}", shape) for k, shape in enumerate(shapes)]
        self.body.values[:] = given[:count] + self._captured
        before = given[:count]
        x = cells.argument("x_t", (states[0][0], size))
        is_lstm = shapes[0][1] == 4 * states[0][1]
        after = (self._lstm if is_lstm else self._gru)(x, before)
        output = after[0]
        if maker.chance(0.05):
            output = self.body.one("Tanh", [output], output.shape)
        if masked:
            kept = before[-1] if maker.chance(0.6) else self._captured[-1]
            output = self._select(output, kept)
            after.append(output)
        kept = [self._select(new, old) for new, old in zip(after, before)]
        after = kept[:-1] + after[-1:] if masked else kept
        self.results = [value.tensor for value in after]
        self.written = output.tensor

    def _select(self, new, old):
        if not self._masked or self._maker.chance(0.02):
            return new
        pair = [new, old] if self._maker.chance(0.97) else [old, new]
        return self.body.one("SelectV2", ["mask_t", *pair], new.shape)

    def _product(self, left, right):
        shape = (left.shape[0], right.shape[1])
        attrs = {"transpose_a": False, "transpose_b": False}
        return self.body.one("MatMul", [left, right], shape, **attrs)

    def _sum(self, left, right):
        pair = [left, right]
        self._maker.random.shuffle(pair)
        return self.body.one(self.body.add_op, pair, left.shape)

    def _times(self, left, right):
        pair = [left, right]
        self._maker.random.shuffle(pair)
        return self.body.one("Mul", pair, left.shape)

    def _other(self, value, others):
        """Now and then another tensor than the right one."""
        return self._maker.random.choice(others) if self._maker.chance(0.02) else value

    def _columns(self, whole, begin, end=None):
        """`whole[:, begin:end]`, as Keras writes it."""
        rows, columns = whole.shape
        masks = {"begin_mask": 1 | 2 * (begin == 0), "end_mask": 1 | 2 * (end is None)}
        ends = [[0, begin], [0, end or 0], [1, 1]]
        inputs = [whole, *(self.body.integers(one) for one in ends)]
        shape = (rows, (columns if end is None else end) - begin)
        return self.body.one("StridedSlice", inputs, shape, **masks)

    def _lstm(self, x, before):
        body, (h, c) = self.body, before[:2]
        w_x, w_h, b = self._captured[:3]
        z = self._sum(self._product(x, w_x), self._product(h, w_h))
        z = body.one("BiasAdd", [z, b], z.shape)
        parts = body.add("Split", [body.integers(1), z], [h.shape] * 4, num_split=4)
        ci = body.one("Tanh", [parts[2]], h.shape)
        i, f, o = (body.one("Sigmoid", [parts[k]], h.shape) for k in (0, 1, 3))
        i, o = self._other(i, [f, o]), self._other(o, [i, f])
        cs = self._sum(self._times(f, c), self._times(i, ci))
        co = body.one("Tanh", [cs], h.shape)
        return [self._times(o, co), cs]

    def _gru(self, x, before):
        body, h = self.body, before[0]
        w_x, w_h, b_x, b_h = self._captured[:4]
        axis, shape = body.integers(1), h.shape
        resets_before = self._maker.chance(0.4)
        cell = shape[1]
        sides = []
        for left, w, b in ((x, w_x, b_x), (h, w_h, b_h)):
            if resets_before and left is h:
                gates = self._product(h, self._columns(w, 0, 2 * cell))
                sides.append([self._columns(gates, k * cell, (k + 1) * cell) for k in (0, 1)])
                continue
            z = self._product(left, w)
            z = body.one("BiasAdd", [z, b], z.shape)
            sides.append(body.add("Split", [axis, z], [shape] * 3, num_split=3))
        z, r = (body.one("Sigmoid", [self._sum(sides[0][k], sides[1][k])], shape) for k in (0, 1))
        r = self._other(r, [z])
        if resets_before:
            others = (2 * cell, None) if self._maker.chance(0.97) else (cell, 2 * cell)
            reset = self._product(self._times(r, h), self._columns(w_h, *others))
        else:
            reset = self._times(r, sides[1][2])
        c = body.one("Tanh", [self._sum(sides[0][2], reset)], shape)
        one = body.one("Const", [], (), value={"value": 1.0})
        rest = body.one("Sub", [one, z], shape)
        return [self._sum(self._times(z, h), self._times(rest, c))]


def loop(node):
    """The nodes of such a loop, and the tensors that are its outputs: see `frames`."""
    attrs, dtype = node["attrs"], node["dtype"]
    frame, states = Frame(node), attrs["states"]
    x, starts = node["inputs"][0], node["inputs"][1 : 1 + states]
    others = node["inputs"][1 + states :]
    captured, masks = others[: attrs["captured"]], others[attrs["captured"] :]
    zero = frame.number("zero", 0)
    time = frame.time(x, attrs["time"])
    lists = [_filled(frame, "in", x, attrs["in_element"], dtype)]
    lists += [_filled(frame, "mask", mask, [-1, 1], "bool") for mask in masks]
    size = frame.number("single", 1) if attrs["last_only"] else time
    shape = frame.number("out_shape", attrs["out_element"])
    out = frame.add("TensorListReserve", "out", [shape, size])
    variables = [("i", zero, "int32", "next_i"), ("list", out, "variant", "write")]
    variables += [
        (f"v{k}", start, dtype, result)
        for k, (start, result) in enumerate(zip(starts, attrs["results"]))
    ]
    if attrs["keeps"]:
        variables += [(f"in{k}", made, "variant", f"same{k}") for k, made in enumerate(lists)]
    frame.variables(variables)
    bounds = [time] if attrs["bound"] is None else [time, frame.number("bound", attrs["bound"])]
    frame.condition(bounds if attrs["both"] else bounds[-1:])
    body = {f"arg_{k}": frame.value(f"v{k}") for k in range(states)}
    body.update(frame.captured(captured))
    index = frame.value("i")
    for k, (made, kind) in enumerate(zip(lists, (dtype, "bool"))):
        body[f"same{k}"] = frame.value(f"in{k}")
        read = body[f"same{k}"] if attrs["keeps"] else frame.enter(f"in{k}", made, "variant")
        name = ("x_t", "mask_t")[k]
        inputs = [read, index, frame.number(f"element{k}", -1, inside=True)]
        body[name] = frame.add("TensorListGetItem", name, inputs, kind)
    frame.body(attrs["body"], body)
    place = frame.number("place", 0, inside=True) if attrs["last_only"] else index
    inputs = [frame.value("list"), place, frame.renamed(attrs["written"], body)]
    body["write"] = frame.add("TensorListSetItem", "write", inputs)
    frame.close(body)
    stack = frame.add("TensorListStack", "stack", [frame.exit("list"), shape], num_elements=-1)
    return frame.nodes, [*(frame.exit(f"v{k}") for k in range(states)), stack]


def _filled(frame, short, x, element, dtype):
    shape = frame.number(short + "_shape", element)
    return frame.add("TensorListFromTensor", short, [frame.awaited(x, dtype), shape], dtype)
