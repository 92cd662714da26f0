"""Pieces of programs with graphs inside: loops, functions, networks with TensorFlow's gradients."""

from fuzzing import cells
from fuzzing.maker import Maker


def network(maker, batch, size, cell):
    """Some steps of a cell, and the gradients that tf.gradients makes of them."""
    lstm = cells.block_kind(maker) is cells.lstm
    columns = 4 if lstm else 2
    w = cells.source(maker, (size + cell, columns * cell), 0.9)
    state = (batch, cell)
    if lstm:
        others = [cells.source(maker, (cell,), 0.3) for _ in range(3)]
        others.append(cells.source(maker, (4 * cell,)))
        weights = [w] + others
    else:
        weights = [w, cells.source(maker, (size + cell, cell), 0.9)]
        weights += [cells.source(maker, (2 * cell,)), cells.source(maker, (cell,))]
    c, h = c0, h0 = cells.source(maker, state), cells.source(maker, state)
    last, xs = [], []
    for _ in range(maker.random.randint(1, 4)):
        xs.append(cells.source(maker, (batch, size)))
        if lstm:
            made = maker.add("LSTMBlockCell", [xs[-1], c, h] + weights, [state] * 7)
            c, h = made[1], made[6]
        else:
            h = maker.add("GRUBlockCell", [xs[-1], h] + weights, [state] * 4)[3]
        if maker.chance(0.6):
            last.append(h)
    ys = sorted(set([h] + last))
    wanted = {weights[0]}.union(v for v in weights[1:] + xs if maker.chance(0.5))
    others = set(weights + xs + [c0, h0]) - wanted
    inputs = ys + sorted(wanted) + sorted(others)
    shapes = [v.shape for v in sorted(wanted)]
    return maker.add("Gradients", inputs, shapes, of=len(ys))


def inner(maker, shapes, kind):
    """A maker of the nodes of a body, and the body's arguments."""
    body = Maker(maker.random, maker.dtype, fed=False)
    given = [cells.argument(f"{kind}_{k}", s) for k, s in enumerate(shapes)]
    body.values += given
    return body, given


def loop(maker, functions, batch, size, cell):
    """A loop that adds gradients to its variables, as the gradient of a loop does."""
    kind = cells.block_kind(maker)
    lstm = kind is cells.lstm
    gates = 4 * cell if lstm else 2 * cell
    rows = size + cell
    shapes = [(rows, gates)]
    shapes += [s for s in [(gates,), (batch, cell), (batch, rows)] if maker.chance(0.4)]
    captured = [(batch, size), (batch, cell), (rows, gates), (cell,), (gates,)]
    captured += [] if lstm else [(rows, cell)]
    body, variables = inner(maker, shapes, "arg")
    more = [cells.argument(f"cap_{k}", s) for k, s in enumerate(captured)]
    body.values += more
    made = kind(body, batch, size, cell, more[2])[0]
    results = []
    for variable in variables:
        term = _term(body, made, variable.shape)
        pair = [variable, term]
        maker.random.shuffle(pair)
        op = maker.random.choice(["AddN", maker.add_op, maker.add_op])
        results.append(body.one(op, pair, variable.shape))
    # A start of zeros is what TensorFlow has.
    starts = [
        maker.one("Const", [], s, value={"value": _zeros(s)})
        if maker.chance(0.7)
        else cells.source(maker, s)
        for s in shapes
    ]
    inputs = starts + [cells.source(maker, s) for s in captured]
    return maker.add(
        "While" if functions and maker.chance(0.5) else "Loop",
        inputs,
        shapes,
        trips=maker.random.randint(0, 3),
        parallel=maker.random.choice([1, 10]),
        body=body.nodes,
        results=[result.tensor for result in results],
    )


def _term(body, cell, shape):
    """What is added to a loop variable of a shape."""
    if shape == cell.w.shape:
        return cells.product(body, cell)
    if shape == cell.gates.shape[1:]:
        return cells.bias(body, cell)
    whole = cells.transposed(body, cell)
    if shape == whole.shape:
        return whole
    begin = body.integers([0, cell.x.shape[1]])
    return body.one("Slice", [whole, begin, body.integers([-1, shape[1]])], shape)


def _zeros(shape):
    if not shape:
        return 0.0
    return [_zeros(shape[1:])] * shape[0]


def call(maker, batch, size, cell, depth=1):
    """A call of a function with cells in it, or of a function that calls one."""
    shapes = [(batch, size), (batch, cell), (size + cell, 4 * cell), (cell,), (4 * cell,)]
    body, _ = inner(maker, shapes, "arg")
    if depth < 3 and maker.chance(0.4):
        results = call(body, batch, size, cell, depth + 1)
    else:
        results = _cells(body, batch, size, cell)
    if maker.chance(0.3):
        results.append(cells.total(body, [results[0], results[0]]))
    inputs = [cells.source(maker, s) for s in shapes]
    return maker.add(
        "Call",
        inputs,
        [result.shape for result in results],
        body=body.nodes,
        results=[result.tensor for result in results],
    )


def _cells(body, batch, size, cell):
    """Two cells with one weight matrix, the sum of their products, and slices."""
    w = cells.source(body, (size + cell, 4 * cell), 0.0)
    made = [cells.lstm(body, batch, size, cell, w)[0] for _ in range(2)]
    results = [cells.total(body, [cells.product(body, one) for one in made if one])]
    if body.chance(0.5):
        results += cells.slices(body, cells.transposed(body, made[0]), size)
    return results
