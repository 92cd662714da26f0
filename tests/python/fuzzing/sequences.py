"""Loops over a sequence as `tf.nn.dynamic_rnn` makes them, often with something in the way."""

from fuzzing import cells
from fuzzing.loops import inner


def sequence(maker, batch, size, cell):
    """One or two layers of cells in a loop: the last states, and the outputs if they are kept."""
    random = maker.random
    time = random.choice([0, 1, 1, 2, 2, 3, 4])
    plan = Plan(maker, batch, size, cell)
    x = cells.source(maker, (time, batch, size), 0.9)
    starts = [start(maker, shape) for shape in plan.states]
    captured = [cells.weights(maker, shape) for shape in plan.captured]
    lengths = [_lengths(maker, batch, time) for _ in range(plan.lengths)]
    if plan.lengths:
        captured.append(cells.zeros(maker, (batch, plan.sizes[-1])))
    shapes = [start.shape if time == 0 else shape for start, shape in zip(starts, plan.states)]
    if plan.written:
        shapes.append((time, batch, plan.written_size))
    return maker.add(
        "Sequence",
        [x, *starts, *captured, *lengths],
        shapes,
        states=len(starts),
        captured=len(captured),
        time=time if maker.chance(0.4) else None,
        bound=random.randint(0, time + 1) if maker.chance(0.2) else None,
        both=maker.chance(0.7),
        in_element=_element(maker, batch, size),
        out_element=_element(maker, batch, plan.written_size) if plan.written else None,
        parallel=random.choice([1, 10, 32]),
        written=plan.written,
        body=plan.body.nodes,
        results=plan.results,
    )


class Plan:
    """The round of a loop.

    Attributes:
      sizes: The sizes of the layers' cells.
      states, captured: Shapes of the loop variables, and of what is the same in all rounds.
      lengths: How many vectors have lengths of rows.
      body: The maker of the nodes of a round.
      results: The tensors that are the next states.
      written, written_size: The tensor that is written to the array, if one is, and its last size.
    """

    def __init__(self, maker, batch, size, cell):
        random = maker.random
        self.sizes = [cell] + [random.randint(2, 4) for _ in range(random.choice([0, 0, 1]))]
        inputs = [size, *self.sizes]
        kinds = [cells.Steps(maker, *sizes) for sizes in zip(inputs, self.sizes)]
        self.lengths = random.choice([0, 0, 1, 1, 1, 2]) if maker.chance(0.8) else 0
        self.lengths = min(self.lengths, 1) if maker.chance(0.9) else self.lengths
        self.states, self.captured = [], []
        for kind, units in zip(kinds, self.sizes):
            self.states += [(batch, units)] * (1 + kind.is_lstm)
            self.captured += kind.shapes
        # A variable that has nothing to do with cells.
        self._has_more = maker.chance(0.06)
        self.states += [(batch, self.sizes[-1])] * self._has_more
        zeros = [(batch, self.sizes[-1])] * bool(self.lengths)
        self.body, given = inner(maker, self.states + self.captured + zeros, "arg")
        self._rename(given)
        self._round(maker, kinds, cells.argument("x_t", (batch, size)))

    def _rename(self, given):
        """The arguments by what they are: states first, then what is captured."""
        count = len(self.states)
        captured = [
            cells.argument(f"cap_{k}", value.shape) for k, value in enumerate(given[count:])
        ]
        self.body.values[:] = given[:count] + captured
        self._given, self._captured = given[:count], iter(captured)
        self._zeros = captured[-1]

    def _round(self, maker, kinds, value):
        body, states = self.body, iter(self._given)
        self.results = []
        for kind in kinds:
            axis = body.integers(1)
            weights = [next(self._captured) for _ in kind.shapes]
            # The cell state first, as TensorFlow has them.
            before = [next(states) for _ in range(1 + kind.is_lstm)]
            *after, _ = kind.step(body, value, before[::-1], weights, axis)
            value, after = after[0], after[::-1]
            for old, new in zip(before, after):
                self.results.append(self._masked(new, old).tensor)
            if maker.chance(0.04):
                value = body.one("Tanh", [value], value.shape)
        if self._has_more:
            more = next(states)
            self.results.append(body.one(body.add_op, [more, value], value.shape).tensor)
        self.written, self.written_size = None, value.shape[1]
        if maker.chance(0.85):
            out = self._masked(value, self._zeros) if self.lengths else value
            if maker.chance(0.05):
                out = body.one("Tanh", [out], out.shape)
            self.written = out.tensor
        for node in body.nodes:
            # Nothing of a round comes later than what is here: there is no cycle.
            earlier = body.nodes[: body.nodes.index(node)]
            if earlier and node["op"] == "Const" and maker.chance(0.02):
                node["after"].append(maker.random.choice(earlier)["name"])

    def _masked(self, new, old):
        """What it is where a row has ended, and otherwise."""
        random = self.body.random
        if not self.lengths or random.random() < 0.03:
            return new
        ended = f"ended_{random.randrange(self.lengths)}"
        pair = [old, new] if random.random() < 0.97 else [new, old]
        return self.body.one("Select", [ended, *pair], new.shape)


def start(maker, shape):
    """A first state: mostly zeros, as TensorFlow has them; now and then one row for all."""
    if maker.chance(0.3):
        return cells.zeros(maker, shape)
    return cells.source(maker, shape if maker.chance(0.95) else (1, shape[1]))


def _lengths(maker, batch, time):
    """How many steps each row has: a constant, or what is fed."""
    if maker.fed and maker.chance(0.5):
        return maker.one("Placeholder", [], (batch,), dtype="int32", shape=[batch])
    value = [maker.random.randint(-1, time + 1) for _ in range(batch)]
    return maker.one("Const", [], (batch,), dtype="int32", value={"value": value})


def _element(maker, batch, size):
    """What an array knows of its elements."""
    return maker.random.choice([None, [-1, size], [batch, size], [-1, -1]])
