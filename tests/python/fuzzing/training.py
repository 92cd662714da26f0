"""Loops of TensorFlow 2 around steps of plain cells, and their gradients."""

from fuzzing import cells
from fuzzing.loops import inner


def loop(maker, batch, size, cell):
    """The gradients of the last states of a loop, and now and then these states."""
    random = maker.random
    is_lstm = maker.chance(0.5)
    gates = (4 if is_lstm else 2) * cell
    states = [(batch, cell)] * (2 if is_lstm else 1)
    shapes = [(size + cell, gates), (gates,)]
    if not is_lstm:
        shapes = [(size + cell, gates), (size + cell, cell), (gates,), (cell,)]
    body, before = inner(maker, states, "arg")
    captured = [
        cells.argument(f"cap_{k}", shape) for k, shape in enumerate([(batch, size), *shapes])
    ]
    body.values += captured
    after = _round(body, is_lstm, before, captured)
    starts = [
        cells.zeros(maker, s) if maker.chance(0.5) else cells.source(maker, s) for s in states
    ]
    weights = [cells.weights(maker, shape) for shape in shapes]
    inputs = [*starts, cells.source(maker, (batch, size)), *weights]
    ends = maker.add(
        "While",
        inputs,
        states,
        trips=random.randint(0, 3),
        parallel=random.choice([1, 10]),
        body=body.nodes,
        results=[result.tensor for result in after],
    )
    wanted = sorted(value for value in set(inputs) if maker.chance(0.7)) or inputs[:1]
    others = sorted(set(inputs) - set(wanted))
    of = ends if maker.chance(0.7) else ends[-1:]
    shapes = [value.shape for value in wanted]
    gradients = maker.add("Gradients", [*of, *wanted, *others], shapes, of=len(of))
    return gradients + [end for end in ends if maker.chance(0.3)]


def _round(body, is_lstm, before, captured):
    """The states after a step, often with something in the way."""
    x, *weights = captured
    axis = body.integers(1)
    if is_lstm:
        h, c, saved = cells.plain_step(body, x, before[::-1], weights, axis)
        after = [c, h]
    else:
        h, saved = cells.plain_gru_step(body, x, before[0], weights, axis)
        after = [h]
    if body.chance(0.1):
        more = body.random.choice(saved)
        if more.shape == h.shape:
            after[-1] = body.one(body.add_op, [h, more], h.shape)
    if body.chance(0.1):
        after[0] = body.one("Tanh", [after[0]], h.shape)
    return after
