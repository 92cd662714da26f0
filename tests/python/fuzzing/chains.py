"""Steps of cells one after the other, as `tf.nn.static_rnn` makes them."""

from fuzzing import cells, sequences


def chain(maker, batch, size, cell):
    """One or two layers: some of their outputs, together or one by one, and last states."""
    xs = _inputs(maker, maker.random.randint(3, 6), batch, size)
    ends = []
    for units in [cell] + [maker.random.randint(2, 4)] * maker.chance(0.3):
        xs, more = _layer(maker, xs, batch, units)
        ends += more
    kind = maker.random.random()
    if kind < 0.4:
        ends.append(xs[-1])
    if kind > 0.3:
        axis = maker.random.choice([0, 0, 1])
        shape = (len(xs), batch) if axis == 0 else (batch, len(xs))
        ends.append(maker.one("Pack", xs, (*shape, xs[0].shape[1]), axis=axis))
    return ends + [x for x in xs if maker.chance(0.1)]


def _inputs(maker, steps, batch, size):
    """What the steps take: mostly the parts of one tensor, in either order."""
    if maker.chance(0.2):
        return [cells.source(maker, (batch, size)) for _ in range(steps)]
    axis = maker.random.choice([0, 1])
    whole = cells.source(maker, (steps, batch, size) if axis == 0 else (batch, steps, size), 0.9)
    parts = maker.add("Unpack", [whole], [(batch, size)] * steps, num=steps, axis=axis)
    return parts[::-1] if maker.chance(0.2) else parts


def _layer(maker, xs, batch, units):
    """The outputs of steps of one cell, and other ends."""
    size, axis, ends = xs[0].shape[1], maker.integers(1), []
    kind = cells.Steps(maker, size, units)
    parameters = _parameters(maker, kind)
    shape = (batch, units)
    h = cells.zeros(maker, shape) if maker.chance(0.5) else cells.source(maker, shape)
    states, hs = [h, *[sequences.start(maker, shape)] * kind.is_lstm], []
    for x in xs:
        if maker.chance(0.03):
            parameters = _parameters(maker, kind)
        if hs and size == units and maker.chance(0.03):
            x = maker.one("Tanh", [hs[-1]], shape)
        *states, saved = kind.step(maker, x, states, parameters, axis)
        if maker.chance(0.04):
            ends.append(maker.random.choice((*states[1:], *saved)))
        hs.append(states[0])
    if kind.is_lstm and maker.chance(0.5):
        ends.append(states[1])
    return hs, ends


def _parameters(maker, kind):
    return [cells.weights(maker, shape) for shape in kind.shapes]
