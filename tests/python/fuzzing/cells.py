"""Pieces of programs: gradient ops of cells, the products around them, and sums of these."""

from fuzzing.maker import Value


class Cell:
    """One step's gradient op: what the products around it are made of, and what ends with it."""

    def __init__(self, x, h, w, gates, ends=()):
        self.x, self.h, self.w, self.gates, self.ends = x, h, w, gates, ends
        self.concat = None


def source(maker, shape, fresh=0.5):
    """A value of a shape: one that is there, or a new one of any kind."""
    there = maker.of_shape(shape)
    if there and not maker.chance(fresh):
        return maker.random.choice(there)
    kind = maker.random.random()
    if kind < 0.45 and maker.fed:
        return maker.placeholder(shape)
    if kind < 0.6 or not maker.fed:
        return maker.constant(shape)
    if kind < 0.85:
        resource = maker.chance(0.3)
        return maker.read(maker.variable(shape, resource), resource)
    return maker.one("Tanh", [source(maker, shape, 0.3)], shape)


def lstm(maker, batch, size, cell, w=None):
    """The gradient op of an LSTM's step, sometimes behind the step itself."""
    w = w or source(maker, (size + cell, 4 * cell))
    vectors = [source(maker, (cell,), 0.1) for _ in range(3)] + [source(maker, (4 * cell,), 0.3)]
    x, c, h = (source(maker, (batch, n)) for n in (size, cell, cell))
    peephole = maker.chance(0.3)
    states = (batch, cell)
    if maker.chance(0.25):
        inputs = [x, c, h, w] + vectors
        outputs = maker.add("LSTMBlockCell", inputs, [states] * 7, use_peephole=peephole)
        given = outputs[:6]
    else:
        given = [source(maker, states, 0.2) for _ in range(6)]
    given = given + [source(maker, states, 0.2) for _ in range(2)]
    shapes = [states, (batch, 4 * cell)] + [(cell,)] * 3
    inputs = [x, c, h, w] + vectors + given
    outputs = maker.add("LSTMBlockCellGrad", inputs, shapes, use_peephole=peephole)
    return [Cell(x, h, w, outputs[1])]


def gru(maker, batch, size, cell, w=None):
    """The gradient op of a GRU's step: a Cell for each of the two weights."""
    w_ru = w or source(maker, (size + cell, 2 * cell))
    w_c = source(maker, (size + cell, cell))
    x, h = source(maker, (batch, size)), source(maker, (batch, cell))
    inputs = [x, h, w_ru, w_c, source(maker, (2 * cell,), 0.3), source(maker, (cell,), 0.3)]
    states = (batch, cell)
    if maker.chance(0.25):
        given = maker.add("GRUBlockCell", inputs, [states] * 4)[:3]
    else:
        given = [source(maker, states, 0.2) for _ in range(3)]
    inputs = inputs + given + [source(maker, states, 0.2)]
    shapes = [(batch, size), states, states, (batch, 2 * cell)]
    outputs = maker.add("GRUBlockCellGrad", inputs, shapes)
    reset = maker.one("Mul", [h, given[0]] if maker.chance(0.5) else [given[0], h], states)
    return [Cell(x, h, w_ru, outputs[3]), Cell(x, reset, w_c, outputs[2])]


def plain(maker, batch, size, cell, w=None):
    """A step of `BasicLSTMCell` or `LSTMCell` and its backward step, in small ops."""
    w = w or source(maker, (size + cell, 4 * cell))
    x, h = source(maker, (batch, size)), source(maker, (batch, cell))
    c = state(maker, (batch, cell) if maker.chance(0.9) else (1, cell))
    b = source(maker, (4 * cell,), 0.3)
    axis, more = maker.integers(1), More(maker, cell, batch if c.shape[0] == batch else 1)
    parameters = [w, b]
    if maker.chance(0.25):  # Each has weights of its own.
        parameters = [weights(maker, (rows, 4 * cell)) for rows in (size, cell)]
        parameters.insert(1, b)
    end, _, saved = plain_step(maker, x, (h, c), parameters, axis, more)
    gates, ends = _plain_grad(maker, c, saved, axis, more)
    return [Cell(x, h, w, gates, [end, *ends])]


def state(maker, shape):
    """A first state: now and then zeros, of which TensorFlow's optimizers leave little."""
    return source(maker, shape) if maker.chance(0.85) else zeros(maker, shape)


def zeros(maker, shape):
    rows = [[0.0] * shape[1]] * shape[0]
    return maker.one("Const", [], shape, value={"value": rows})


def function(maker):
    """What enters the state, and what leaves it."""
    return maker.random.choice(["Tanh", "Tanh", "Tanh", "Relu"])


def _through(maker, function, value, gradient):
    """A gradient through a function of this value."""
    pair = [gradient, value] if function == "Relu" else [value, gradient]
    return maker.one(function + "Grad", pair, value.shape)


class More:
    """What a step of `LSTMCell` has besides: peepholes (i, f, o), a bound, and a function."""

    def __init__(self, maker=None, cell=0, rows=1):
        self.peepholes, self.bound = None, None
        self.function = function(maker) if maker else "Tanh"
        if maker and maker.chance(0.4):
            shapes = [(cell,)] * 3
            if maker.chance(0.2):  # They broadcast.
                others = [(cell,), (1, cell), (), (1,), (rows, 1), (rows, cell)]
                shapes = [maker.random.choice(others) for _ in shapes]
            self.peepholes = [weights(maker, shape) for shape in shapes]
        if maker and maker.chance(0.35):
            size = maker.random.choice([0.05, 0.3, 0.8])
            self.bound = [
                maker.one("Const", [], (), value={"value": value}) for value in (size, -size)
            ]


def _product(maker, left, w):
    shape = (left.shape[0], w.shape[1])
    return maker.one("MatMul", [left, w], shape, transpose_a=False, transpose_b=False)


def _preactivations(maker, parts, w, b, axis, w_h=None):
    """The product of [x, h] and w or those of x and w and of h and w_h, plus b if there is one."""
    (rows, columns), gates = w.shape, (parts[0].shape[0], w.shape[1])
    if w_h:
        if maker.chance(0.1):  # One row of a product stands for all.
            place = maker.random.choice([0, 1])
            parts = list(parts)
            parts[place] = source(maker, (1, parts[place].shape[1]))
        both = [_product(maker, *pair) for pair in zip(parts, (w, w_h))]
        op = maker.add_op if both[0].shape != both[1].shape or maker.chance(0.8) else "AddN"
        product = maker.one(op, both if maker.chance(0.8) else both[::-1], gates)
    else:
        product = _product(maker, maker.one("ConcatV2", [*parts, axis], (gates[0], rows)), w)
    assert (columns,) == b.shape
    if maker.bias_op in (None, "BiasAdd"):
        return maker.one("BiasAdd", [product, b], gates) if maker.bias_op else product
    if maker.chance(0.1):  # A sum adds other tensors, too.
        b = source(maker, maker.random.choice([(1, columns), (1,), gates]))
    pair = [product, b] if maker.chance(0.8) else [b, product]
    return maker.one(maker.bias_op, pair, gates)


def plain_step(maker, x, states, parameters, axis, more=None):
    """A step of an LSTM cell: h, c, and what the backward step needs."""
    more = more or More()
    h, c = states
    shape = h.shape
    w, b, *w_h = parameters
    z = _preactivations(maker, [x, h], w, b, axis, *w_h)
    i, ci, f, o = maker.add("Split", [axis, z], [shape] * 4, num_split=4)
    if maker.chance(0.8):
        f = maker.one(maker.add_op, [f, maker.constant(())], shape)
    wci, wcf, wco = more.peepholes or [None] * 3
    i, f = _peephole(maker, i, wci, c), _peephole(maker, f, wcf, c)
    i, f = (maker.one("Sigmoid", [gate], shape) for gate in (i, f))
    ci = maker.one(more.function, [ci], shape)
    terms = [maker.one("Mul", pair, shape) for pair in ([c, f], [i, ci])]
    cs = raw = least = maker.one(maker.add_op, terms, shape)
    if more.bound:
        least = maker.one("Minimum", [raw, more.bound[0]], shape)
        cs = maker.one("Maximum", [least, more.bound[1]], shape)
    o = maker.one("Sigmoid", [_peephole(maker, o, wco, cs)], shape)
    co = maker.one(more.function, [cs], shape)
    return maker.one("Mul", [co, o], shape), cs, (i, ci, f, o, co, raw, least, cs)


def _peephole(maker, gate, weights, state):
    """The gate before its activation, with what it sees of the state."""
    if weights is None:
        return gate
    seen = maker.one("Mul", [weights, state], state.shape)
    return maker.one(maker.add_op, [gate, seen], gate.shape)


def _plain_grad(maker, c, saved, axis, more):
    """The backward step: with respect to the gates before their activations, and other ends."""
    i, ci, f, o, co, raw, least, cs = saved
    states, cell = i.shape, i.shape[1:]
    product = lambda *pair: maker.one("Mul", pair, states)  # noqa: E731
    dh = source(maker, states, 0.3)
    d_o = maker.one("SigmoidGrad", [o, product(dh, co)], states)
    terms = [_through(maker, more.function, co, product(dh, o))]
    terms += [product(d_o, more.peepholes[2])] if more.peepholes else []
    terms += [source(maker, states, 0.2)] if maker.chance(0.7) else []
    if maker.chance(0.1):  # Nobody has read the output.
        d_o, terms = zeros(maker, states), [source(maker, states, 0.2)]
    dcs = maker.one("AddN", terms, states) if len(terms) > 1 else terms[0]
    for compare, tensor, bound in zip(
        ("GreaterEqual", "LessEqual"), (least, raw), reversed(more.bound or [])
    ):
        mask = maker.one(compare, [tensor, bound], states, hidden=True)
        dcs = maker.one("Select", [mask, dcs, zeros(maker, states)], states)
    di = maker.one("SigmoidGrad", [i, product(dcs, ci)], states)
    dci = _through(maker, more.function, ci, product(dcs, i))
    df = maker.one("SigmoidGrad", [f, product(dcs, c)], states)
    ends = [product(dcs, f)]
    if more.peepholes:
        ends += [product(d, w) for d, w in zip((di, df), more.peepholes)]
        seen = [product(*pair) for pair in ((di, c), (df, c), (d_o, cs)) if maker.chance(0.8)]
        ends += [
            maker.one("Sum", [term, maker.integers([0])], cell, keep_dims=False) for term in seen
        ]
    return maker.one("ConcatV2", [di, dci, df, d_o, axis], (states[0], 4 * states[1])), ends


def weights(maker, shape):
    """Mostly a value whose shape TensorFlow knows."""
    kind = maker.random.random()
    if kind < 0.1:
        return source(maker, shape)
    if kind < 0.6 or not maker.fed:
        return maker.constant(shape)
    resource = maker.chance(0.3)
    return maker.read(maker.variable(shape, resource), resource)


def plain_gru_step(maker, x, h, parameters, axis, function="Tanh"):
    """A step of a GRU cell: h, and what the backward step of `GRUCell` needs."""
    w_ru, w_c, b_ru, b_c, *of_state = parameters
    w_ru_h, w_c_h = of_state or [None] * 2
    states, gates = h.shape, (h.shape[0], 2 * h.shape[1])
    z = _preactivations(maker, [x, h], w_ru, b_ru, axis, w_ru_h)
    if maker.chance(0.15):
        halves = maker.add("Split", [axis, z], [states] * 2, num_split=2)
        r, u = (maker.one("Sigmoid", [half], states) for half in halves)
        both = maker.one("ConcatV2", [r, u, axis], gates)
    else:
        both = maker.one("Sigmoid", [z], gates)
        r, u = maker.add("Split", [axis, both], [states] * 2, num_split=2)
    if maker.chance(0.15):
        r, u = u, r
    hr = maker.one("Mul", [r, h], states)
    c = maker.one(function, [_preactivations(maker, [x, hr], w_c, b_c, axis, w_c_h)], states)
    one = maker.one("Const", [], (), value={"value": 1.0})
    rest = maker.one("Sub", [one, u], states)
    shares = [rest, u] if maker.chance(0.15) else [u, rest]
    terms = [maker.one("Mul", list(pair), states) for pair in zip(shares, [h, c])]
    return maker.one(maker.add_op, terms, states), (both, r, u, hr, c, rest)


def plain_gru(maker, batch, size, cell, w=None):
    """A step of `GRUCell` and its backward step, in small ops."""
    w_ru = w or weights(maker, (size + cell, 2 * cell))
    rows, states, gates = (batch, size + cell), (batch, cell), (batch, 2 * cell)
    w_c = weights(maker, (size + cell, cell))
    x, h, axis = source(maker, (batch, size)), state(maker, states), maker.integers(1)
    biases = [source(maker, shape, 0.3) for shape in (gates[1:], states[1:])]
    candidate = function(maker)
    parameters = [w_ru, w_c, *biases]
    if maker.chance(0.25):  # Each has weights of its own.
        shapes = [(size, 2 * cell), (size, cell), (cell, 2 * cell), (cell, cell)]
        of_x, of_state = (
            [weights(maker, shape) for shape in some] for some in (shapes[:2], shapes[2:])
        )
        parameters = [*of_x, *biases, *of_state]
    end, saved = plain_gru_step(maker, x, h, parameters, axis, candidate)
    both, r, u, hr, c, rest = saved
    ends = [end]
    dh = source(maker, states, 0.3)
    d_c_bar = _through(maker, candidate, c, maker.one("Mul", [dh, rest], states))
    product = maker.one("MatMul", [d_c_bar, w_c], rows, transpose_a=False, transpose_b=True)
    place = [maker.integers([0, size]), maker.integers([batch, cell])]
    d_hr = maker.one("Slice", [product, *place], states)
    negative = maker.one("Neg", [maker.one("Mul", [dh, c], states)], states)
    du = maker.one(maker.add_op, [maker.one("Mul", [dh, h], states), negative], states)
    gradients = [maker.one("Mul", [d_hr, h], states), du]
    for gradient, gate in ((dh, u), (d_hr, r)):
        ends.append(maker.one("Mul", [gradient, gate], states))
    dz = maker.one("ConcatV2", [*gradients, axis], gates)
    d_ru_bar = maker.one("SigmoidGrad", [both, dz], gates)
    return [Cell(x, h, w_ru, d_ru_bar, ends), Cell(x, hr, w_c, d_c_bar)]


class Steps:
    """Steps of a cell that nobody takes gradients of: a plain one, or TensorFlow's own.

    Attributes:
      is_lstm: Whether it has two states.
      shapes: Of its parameters.
    """

    def __init__(self, maker, size, units):
        random, kinds = maker.random, ["lstm", "lstm", "gru", "gru", "block_lstm", "block_gru"]
        # TensorFlow has no GRUBlockCell in half.
        self._kind = random.choice(kinds[:-1] if maker.dtype == "half" else kinds)
        self.is_lstm, self._function = self._kind.endswith("lstm"), function(maker)
        rows, gates, self._attrs = size + units, 4 if self.is_lstm else 2, {}
        self.shapes = [(rows, gates * units), (gates * units,)]
        if self._kind == "lstm" and maker.chance(0.3):
            self.shapes = [(size, gates * units), self.shapes[1], (units, gates * units)]
        if not self.is_lstm:
            self.shapes = [self.shapes[0], (rows, units), self.shapes[1], (units,)]
        if self._kind == "gru" and maker.chance(0.3):
            self.shapes[:2] = [(size, gates * units), (size, units)]
            self.shapes += [(units, gates * units), (units, units)]
        if self._kind == "block_lstm":
            bounds = {
                "forget_bias": random.choice([0.0, 1.0]),
                "cell_clip": random.choice([-1.0, 0.3]),
            }
            self._attrs = dict(bounds, use_peephole=maker.chance(0.4))
            self.shapes += [(units,)] * 3 * self._attrs["use_peephole"]

    def step(self, maker, x, states, parameters, axis):
        """The next states, h first, and what else a step computes."""
        shape = states[0].shape
        if self._kind == "lstm":
            more = More()
            more.function = self._function
            return plain_step(maker, x, states, parameters, axis, more)
        if self._kind == "gru":
            return plain_gru_step(maker, x, states[0], parameters, axis, self._function)
        if self._kind == "block_gru":
            *gates, h = maker.add("GRUBlockCell", [x, states[0], *parameters], [shape] * 4)
            return h, gates
        (h, c), (w, b, *peepholes) = states, parameters
        # Without peepholes they may be of any length, and are read nowhere.
        peepholes = peepholes or [maker.constant((maker.random.choice([shape[1], 3]),))] * 3
        inputs = [x, c, h, w, *peepholes, b]
        i, cs, f, o, ci, co, h = maker.add("LSTMBlockCell", inputs, [shape] * 7, **self._attrs)
        return h, cs, (i, f, o, ci, co)


def block_kind(maker):
    """`lstm` or `gru`, of which TensorFlow has no half."""
    return lstm if maker.dtype == "half" or maker.chance(0.7) else gru


def any_kind(maker):
    """`block_kind`, `plain` or `plain_gru`."""
    kind = maker.random.random()
    return plain if kind < 0.25 else plain_gru if kind < 0.4 else block_kind(maker)


def _left(maker, cell):
    """The left factor of a product: [x, h] in most programs."""
    kind, batch = maker.random.random(), cell.x.shape[0]
    size, units = cell.x.shape[1], cell.h.shape[1]
    rows = (batch, size + units)
    if kind < 0.15:
        return source(maker, rows)
    if cell.concat is not None and kind < 0.5:
        return cell.concat
    parts = [cell.x, cell.h]
    if kind > 0.94:
        parts = [source(maker, (batch, units)), source(maker, (batch, size))]
    elif kind > 0.88:
        parts = [cell.x, source(maker, (batch, units))]
    elif kind > 0.84 and units > 1:
        parts = [cell.x] + [source(maker, (batch, n)) for n in (1, units - 1)]
    axis = maker.integers(maker.random.choice([1, 1, -1]))
    left = maker.one("ConcatV2", parts + [axis], rows)
    if maker.chance(0.7):
        cell.concat = left
    return left


def product(maker, cell):
    """The gradient of a cell's weights."""
    left = _left(maker, cell)
    shape = (left.shape[1], cell.gates.shape[1])
    return maker.one("MatMul", [left, cell.gates], shape, transpose_a=True, transpose_b=False)


def bias(maker, cell):
    attrs = {"data_format": "NHWC"} if maker.chance(0.5) else {}
    return maker.one("BiasAddGrad", [cell.gates], (cell.gates.shape[1],), **attrs)


def transposed(maker, cell):
    """The gradient of x and h."""
    shape = (cell.gates.shape[0], cell.w.shape[0])
    inputs = [cell.gates, cell.w]
    return maker.one("MatMul", inputs, shape, transpose_a=False, transpose_b=True)


def slices(maker, whole, size):
    """Slices of a product: x and h in most programs, else any columns and rows, overlapping too."""
    rows, columns = whole.shape
    places = [(0, 0, rows, size), (0, size, rows, columns - size)]
    if maker.chance(0.4):
        places = [_place(maker, rows, columns) for _ in range(maker.random.randint(1, 4))]
    made = []
    for row, column, high, wide in places:
        # -1 stands for all that is left.
        sizes = [
            -1 if row + high == rows and maker.chance(0.5) else high,
            -1 if column + wide == columns and maker.chance(0.3) else wide,
        ]
        inputs = [whole, maker.integers([row, column]), maker.integers(sizes)]
        made.append(maker.one("Slice", inputs, (high, wide)))
    return made


def _place(maker, rows, columns):
    random = maker.random
    row = 0 if maker.chance(0.8) else random.randint(0, rows - 1)
    column = random.randint(0, columns - 1)
    high = rows - row if maker.chance(0.7) else random.randint(1, rows - row)
    return row, column, high, random.randint(1, columns - column)


def total(maker, terms):
    """A sum: AddN, a tree of Add and AddV2, or both."""
    terms, shape = list(terms), terms[0].shape
    random = maker.random
    if maker.chance(0.3):
        terms.append(source(maker, shape))
    if maker.chance(0.1):
        terms.append(random.choice(terms))
    random.shuffle(terms)
    if len(terms) == 1 and maker.chance(0.9):
        return terms[0]
    style = random.random()
    if style < 0.4:
        return maker.one("AddN", terms, shape)
    while len(terms) > 1:
        add_n = maker.chance(0.3 if style < 0.7 else 0.0)
        taken = [terms.pop(random.randrange(len(terms))) for _ in range(2)]
        while add_n and terms and maker.chance(0.4):
            taken.append(terms.pop())
        terms.append(maker.one("AddN" if add_n else maker.add_op, taken, shape))
    if maker.chance(0.15):
        terms.append(_broadcast(maker, terms.pop()))
    return terms[0]


def _broadcast(maker, value):
    """Adds a row, one number, or on the other side many of them."""
    shape = (1,) + value.shape[1:] if maker.chance(0.5) else (1,)
    pair = [value, source(maker, shape)]
    maker.random.shuffle(pair)
    return maker.one(maker.add_op, pair, value.shape)


def deep(maker, value):
    """A sum of sums of sums, with other summands."""
    for _ in range(maker.random.choice([5, 10, 20, 30, 150])):
        pair = [value, source(maker, value.shape, 0.05)]
        maker.random.shuffle(pair)
        value = maker.one(maker.random.choice(["AddN", maker.add_op]), pair, value.shape)
    return value


def argument(name, shape):
    return Value(name, tuple(shape))
