"""Cases of the ops that the graph passes put into graphs.

Each op has a reference here, in float64 from its equations, that raises `Malformed` where shapes or
attributes are not what `docs/graph-ops.md` says.
"""

import functools

import numpy as np

from blockcell import op_table
from robustness import judging, keras_reference, own_reference, shapes
from robustness.judging import Case
from robustness.own_reference import Malformed

REFERENCES = {**own_reference.REFERENCES, **keras_reference.REFERENCES}

LIMITS = {np.float32: 8e-6, np.float16: 4e-3, op_table.BFLOAT16: 3.2e-2}
BATCH, INPUT, CELL, TIME = 3, 2, 4, 5


class Call:
    """A valid call, from which cases are made.

    Args:
      op: The op's name.
      inputs: For each input its shape, or a list of shapes. Numbers of steps are given as arrays.
      attributes: A dictionary.
      kin: Sets of inputs that share a size, so that either may be blamed.
    """

    def __init__(self, op, inputs, attributes=(), kin=()):
        self.op, self.shapes, self.attributes = op, inputs, dict(attributes)
        self._kin = kin

    def inputs(self, dtype):
        """Random inputs."""
        random = np.random.RandomState(7)

        def made(shape):
            if isinstance(shape, list):
                return [made(one) for one in shape]
            if isinstance(shape, np.ndarray):
                return shape
            return random.uniform(-0.9, 0.9, shape).astype(dtype)

        return {name: made(shape) for name, shape in self.shapes.items()}

    def kin(self, name):
        """The inputs that may be blamed when this one is wrong."""
        return {name}.union(*(some for some in self._kin if name in some))


def _calls():
    batch, width, cell = BATCH, INPUT, CELL
    yield Call(
        "BlockcellMatMulAddN",
        {
            "a": [(5, 2), (5, 3), (2, 2), (2, 3)],
            "b": [(5, 4), (2, 4)],
            "addends": [(5, 4), (5, 4)],
        },
        kin=[{"a", "b", "addends"}],
    )
    yield Call(
        "BlockcellMatMulSlice",
        {"a": (3, 5), "b": (6, 5)},
        {"num_parts": 2, "begins": [0, 2], "sizes": [2, -1], "rows": 2},
        kin=[{"a", "b", "rows", "columns"}],
    )
    yield Call(
        "BlockcellBiasAddGradAddN",
        {"out_backprop": [(3, 4), (5, 4)], "addends": [(4,)]},
        kin=[{"out_backprop", "addends"}],
    )
    step = {"x": (batch, width), "h_prev": (batch, 3), "w": (width + 3, 4 * cell), "b": (4 * cell,)}
    everything = [{*step, "cs_prev", "peepholes", "w_h"}]
    cells = [("none", [], 0), ("a state", [(batch, cell)], 0), ("a vector", [(cell,)], 0)]
    cells += [("many states", [(2, batch, cell)], 0), ("peepholes", [(batch, cell)], 3)]
    cells += [("a peephole", [], 1), ("peepholes of many states", [(2, batch, cell)], 3)]
    for _, state, peepholes in cells:
        lists = {"cs_prev": state, "peepholes": [(cell,)] * peepholes, "w_h": []}
        yield Call("BlockcellLSTMCell", {**step, **lists}, {"cell_clip": 0.4}, everything)
    order, lists = {"gate_order": [0, 3, 1, 2]}, {"cs_prev": [], "peepholes": [], "w_h": []}
    yield Call("BlockcellLSTMCell", {**step, **lists}, order, everything)
    two = {**step, **lists, "w": (width, 4 * cell), "w_h": [(3, 4 * cell)]}
    for rows in ({}, {"x": (1, width)}, {"h_prev": (1, 3)}):
        attributes = {"broadcasts_rows": bool(rows)}
        yield Call("BlockcellLSTMCell", {**two, **rows}, attributes, everything)
    yield from _gradient_calls()
    yield from _layer_calls()
    yield from _keras_calls()


def _gradient_calls():
    batch, cell = BATCH, CELL
    gates = {name: (batch, cell) for name in "ifo"}
    gates["ci"] = gates["co"] = (batch, cell)
    all_names = {*gates, "cs_prev", "cs_grad", "h_grad", "peepholes", "cs"}
    for lists, attributes in (
        (([(batch, cell)], [(batch, cell)], [(batch, cell), (cell,)]), {}),
        (([(batch, cell)], [], [(batch, cell)]), {"cell_clip": 0.4}),
        (([], [], []), {"gate_order": [0, 2, 1, 3]}),
        (([(1, cell)], [(1, 1)], []), {"sums_to_gates": True}),
        (([(1, cell)], [(1, 1)], []), {"gate_order": [1, 3, 0, 2]}),
        (([(2, batch, cell)], [(cell,)], [(2, 1, cell)]), {"sums_to_gates": True}),
    ):
        state = max([(batch, cell), *lists[0]], key=len)
        inputs = dict(gates, co=state, **dict(zip(("cs_prev", "cs_grad", "h_grad"), lists)))
        without = {"peepholes": [], "cs": []}
        yield Call(
            "BlockcellLSTMCellGrad",
            {**inputs, **without},
            {"num_through_peepholes": 0, **attributes},
            [all_names],
        )
    inputs.update(co=(batch, cell), cs_prev=[(batch, cell)], cs_grad=[(cell,)])
    inputs.update(h_grad=[(batch, cell)], peepholes=[(cell,)] * 3, cs=[(batch, cell)])
    yield Call("BlockcellLSTMCellGrad", inputs, {"num_through_peepholes": 2}, [all_names])
    added_up = {"num_through_peepholes": 2, "sums_to_gates": True, "sums_to_cs_prev": True}
    for shape in ((1, cell), (cell,), (batch, 1)):
        row = {**inputs, "cs_prev": [shape]}
        yield Call("BlockcellLSTMCellGrad", row, added_up, [all_names])
        to_product = {"num_through_peepholes": 2, "sums_to_product": True}
        yield Call("BlockcellLSTMCellGrad", row, to_product, [all_names])
    large = dict.fromkeys(["i", "f", "o", "co"], (2, batch, cell))
    lists = dict.fromkeys(["cs_prev", "h_grad", "cs"], [(2, batch, cell)])
    yield Call("BlockcellLSTMCellGrad", {**inputs, **large, **lists}, added_up, [all_names])
    one = {**inputs, "cs_prev": [], "peepholes": [(cell,)]}
    yield Call("BlockcellLSTMCellGrad", one, {"num_through_peepholes": 0}, [all_names])
    weights = {"w_ru": (INPUT + cell, 2 * cell), "w_c": (INPUT + cell, cell)}
    step = {"x": (batch, INPUT), "h_prev": (batch, cell), **weights, "b_ru": (2 * cell,)}
    step["b_c"] = (cell,)
    yield Call("BlockcellGRUCell", step, kin=[set(step)])
    for op, saved, gradient in (
        ("BlockcellGRUCellGradC", ("u", "h_prev", "c"), "d_h"),
        ("BlockcellGRUCellGradRU", ("r", "h_prev", "d_u_bar"), "d_hr"),
    ):
        for shape in ((batch, cell), (cell,), (), (batch, 1)):
            inputs = dict.fromkeys(saved, (batch, cell))
            yield Call(op, {**inputs, gradient: shape}, kin=[{*saved, gradient}])


def _layer_calls():
    batch, width, cell, time = BATCH, INPUT, CELL, TIME
    number = functools.partial(np.array, dtype=np.int32)
    tails = {
        "BlockcellLSTMLayer": {
            "cs_prev": (batch, cell),
            "w": (width + cell, 4 * cell),
            "b": (4 * cell,),
            "peepholes": [],
            "w_h": [],
            "projection": [],
        },
        "BlockcellGRULayer": {
            "w_ru": (width + cell, 2 * cell),
            "w_c": (width + cell, cell),
            "b_ru": (2 * cell,),
            "b_c": (cell,),
        },
    }
    narrow = {"h_prev": (batch, 3), "projection": [(cell, 3)]}
    projected = {**narrow, "w": (width + 3, 4 * cell)}
    as_wide = {"x": (time, batch, 3), "w": (6, 4 * cell)}
    wide = {"w": (2 * cell, 4 * cell), "w_ru": (2 * cell, 2 * cell), "w_c": (2 * cell, cell)}
    two_weights = {"w": (width, 4 * cell), "w_h": [(cell, 4 * cell)]}
    for op, tail in tails.items():
        head = {"time": number(time), "rounds": [number(time), number(time - 1)]}
        states = {"x": (time, batch, width), "h_prev": (batch, cell)}
        for lengths, attributes, more in (
            ([], {}, {"rounds": [number(time)]}),
            ([number([0, 2, 7])], {}, {}),
            ([number(3)], {"x_sizes": [-1, width], "h_sizes": [batch, cell]}, {}),
            ([], {"h_sizes": [batch, cell], "needs_h": False}, {"peepholes": [(cell,)] * 3}),
            ([], {"h_sizes": [batch, cell], "lists": True}, {"time": number(time + 1)}),
            ([], {"broadcasts": False}, {}),
            ([], {"gate_order": [0, 3, 1, 2]}, {}),
            ([], {"broadcasts_rows": True}, {**two_weights, "h_prev": (1, cell)}),
            ([], {"broadcasts_rows": True}, {**two_weights, "x": (time, 1, width)}),
            ([number([0, 2, 7])], {"broadcasts_rows": False}, two_weights),
            ([number([0, 2, 7])], {"proj_clip": 0.1}, projected),
            ([number([0, 2, 7])], {"adds_x": True, "proj_clip": -1.0}, {**projected, **as_wide}),
            ([], {"adds_x": True}, {"x": (time, batch, cell), **wide}),
        ):
            own = {"broadcasts", "gate_order", "broadcasts_rows", "proj_clip"}
            if "cs_prev" not in tail and own & set(attributes):
                continue
            inputs = {**head, "sequence_length": lengths, **states, **tail}
            inputs.update((name, value) for name, value in more.items() if name in inputs)
            yield Call(op, inputs, attributes, [set(inputs)])


def _keras_calls():
    batch, width, cell, time = BATCH, INPUT, CELL, TIME
    number = functools.partial(np.array, dtype=np.int32)
    mask = np.random.RandomState(3).uniform(size=(time, batch, 1)) < 0.6
    state = (batch, cell)
    tails = {
        "BlockcellKerasLSTM": {
            "cs_prev": state,
            **{"w_x": (width, 4 * cell), "w_h": (cell, 4 * cell), "b": (4 * cell,)},
        },
        "BlockcellKerasGRU": {
            **{"w_x": (width, 3 * cell), "w_h": (cell, 3 * cell)},
            **{"b_x": (3 * cell,), "b_h": (3 * cell,)},
        },
    }
    known = {"x_sizes": [-1, width], "h_sizes": [batch, cell]}
    masked = {"mask": [mask], "before": [state]}
    for op, tail in tails.items():
        head = {"size": number(time), "rounds": [number(time)], "mask": [], "before": []}
        call = {**head, "x": (time, batch, width), "h_prev": state, **tail}
        for more, attributes in (
            ({}, {}),
            ({"rounds": [number(time), number(time - 1)], "h_prev": (1, cell)}, known),
            (masked, {"repeats": False, **known}),
            ({**masked, "size": number(1), "before": [(1, cell)]}, {"last_only": True}),
            ({**masked, "x": (time, 1, width)}, {"needs_h": False}),
        ):
            yield Call(op, {**call, **more}, attributes, [{*call, "h"}])
        if op == "BlockcellKerasGRU":
            yield Call(op, {**call, **masked}, {"reset_after": False}, [{*call, "h"}])


CALLS = list(_calls())
OPS = list(dict.fromkeys(call.op for call in CALLS))


def cases(op):
    """Every case of an op."""
    for call in CALLS:
        if call.op == op:
            for dtype in LIMITS if op_table.BFLOAT16 else list(LIMITS)[:2]:
                yield from _cases_of(call, dtype)


def _cases_of(call, dtype):
    good = call.inputs(dtype)
    lists = [f"{len(value)} {name}" for name, value in good.items() if isinstance(value, list)]
    title = ", ".join([np.dtype(dtype).name, *lists])

    def case(what, inputs, blame, attributes=call.attributes):
        return Case(
            call.op,
            f"{title}: {what}",
            lambda: inputs,
            attributes,
            functools.partial(_problem, call.op, attributes),
            functools.partial(_inaccuracy, call.op, attributes, dtype),
            tuple(blame),
        )

    yield case("good", good, [call.op])
    for name, place, value in _arrays(good):
        for what, shape in shapes.wrong(value.shape):
            wrong = np.ones(shape, value.dtype)
            yield case(f"{name}, {what}", _replaced(good, name, place, wrong), call.kin(name))
        for what, odd in shapes.odd_values(value):
            yield case(f"{name}, {what}", _replaced(good, name, place, odd), call.kin(name))
        if value.dtype == np.int32:
            # No machine has the memory of so many steps of h as a list may be given.
            is_size = name == "size" or (name == "time" and call.attributes.get("lists"))
            most = 2**31 - 1 if is_size else 2**31
            for number in filter(most.__gt__, (*shapes.LENGTHS, TIME, TIME + 1)):
                steps = np.full_like(value, number)
                blame = [*call.kin(name), "h_sizes"]
                yield case(f"{name} is {number}", _replaced(good, name, place, steps), blame)
    yield from _odd_attributes(call, good, case)


def _odd_attributes(call, good, case):
    for name in ("forget_bias", "cell_clip"):
        if call.op.startswith("BlockcellLSTM") and not call.op.endswith("Grad"):
            for number in shapes.FLOATS:
                yield case(
                    f"{name} {number}", good, [name], dict(call.attributes, **{name: number})
                )
    numbers = (-(2**63), -2, -1, 0, 1, 3, 7, 2**31, 2**63 - 1)
    if call.op == "BlockcellMatMulSlice":
        for number in numbers:
            for name in ("rows", "begins", "sizes"):
                value = number if name == "rows" else [number, 1]
                blame = ["rows", "columns", name]
                yield case(f"{name} {number}", good, blame, dict(call.attributes, **{name: value}))
        for name in ("begins", "sizes"):
            for value in ([], [1], [0, 1, 1]):
                yield case(f"{name} {value}", good, [name], dict(call.attributes, **{name: value}))
    if "gate_order" in call.attributes:
        for value in ([], [0, 1, 2], [0, 1, 1, 3], [-1, 0, 1, 2], [0, 1, 2, 2**32], [3, 2, 1, 0]):
            changed = dict(call.attributes, gate_order=value)
            yield case(f"gate_order {value}", good, ["gate_order"], changed)
    if "x_sizes" in call.attributes or call.op.endswith("Layer"):
        for name in ("x_sizes", "h_sizes"):
            for value in ([1], [3, 2, 4], [3, 2], [3, 4], [-1, -1], [-2, 2**40], [0, 0]):
                blame = [name, "x", "h"]
                yield case(f"{name} {value}", good, blame, dict(call.attributes, **{name: value}))


def _arrays(inputs):
    """All arrays: the name of the input, the place in its list or None, and the array."""
    for name, value in inputs.items():
        if isinstance(value, list):
            for place, one in enumerate(value):
                yield name, place, one
        else:
            yield name, None, value


def _replaced(inputs, name, place, value):
    if place is not None:
        value = [value if k == place else one for k, one in enumerate(inputs[name])]
    return dict(inputs, **{name: value})


def _problem(op, attributes, inputs):
    try:
        _wanted(op, attributes, inputs)
    except Malformed as error:
        return str(error)
    return None


def _wanted(op, attributes, inputs):
    with np.errstate(all="ignore"):
        return REFERENCES[op](**inputs, **attributes)


def _inaccuracy(op, attributes, dtype, inputs, got):
    return judging.inaccuracy(got, _wanted(op, attributes, inputs), dtype, LIMITS[dtype])
