"""Calls of Keras layers with inputs, states and masks of all shapes and types, drawn from seeds."""

import random
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

BATCH, TIME, INPUT_SIZE, UNITS = 4, 5, 3, 6


class Given(NamedTuple):
    """A tensor that a layer gets."""

    shape: Tuple[int, ...]
    dtype: str = "float32"
    unknown: int = 0
    """How many axes a function does not know: from the first one on, the rows."""


class Case(NamedTuple):
    """A layer and a call."""

    layer: str
    """A name in `keras_cases.LAYERS`."""
    arguments: Dict[str, Any]
    in_function: bool
    x: Given
    states: Optional[List[Given]]
    mask: Optional[Given]
    zero_output_for_mask: bool = False
    is_bidirectional: bool = False

    def __str__(self) -> str:
        """A short description."""
        parts = [self.layer, *(key for key, value in self.arguments.items() if value is True)]
        parts += ["function"] * self.in_function + ["bidirectional"] * self.is_bidirectional
        for name, values in (("x", [self.x]), ("s", self.states or []), ("m", [self.mask])):
            parts += [
                f"{name}{'x'.join(map(str, value.shape))}"
                + f"{'' if value.dtype in ('bool', 'float32') else value.dtype}"
                + "?" * value.unknown
                for value in values
                if value is not None
            ]
        return "-".join(parts)


UNKNOWN = [[0], [0, 1, 2], [1, 1, 2], [2]]
ROWS = [BATCH] * 6 + [1]
STATES = [(BATCH, UNITS)] * 8 + [(1, UNITS)] * 6
STATES += [(2, UNITS), (UNITS,), (), (BATCH, 1), (1, 1), (BATCH, UNITS, 1), (BATCH, UNITS + 1)]
MASKS = [(BATCH, TIME)] * 8 + [(1, TIME)] * 3 + [(BATCH, TIME + 2)] * 3
MASKS += [(BATCH, TIME - 1), (BATCH, 1), (BATCH + 1, TIME), (1, TIME + 2)]
MASKS += [(BATCH, TIME, 1), (TIME,)]
LAYERS = ["LSTM"] * 4 + ["GRU"] * 4 + ["GRU_reset_before", "RNN_LSTMCell", "RNN_GRUCell"]


def _in_function(layer: str, states: Any = None, mask: Any = None, rows: int = BATCH) -> Case:
    """A call in a function that knows neither rows nor steps."""
    x = Given((rows, TIME, INPUT_SIZE), unknown=2)
    states = states and [Given(shape, unknown=1) for shape in states]
    arguments = {"return_sequences": mask is None, "go_backwards": layer == "GRU"}
    return Case(layer, arguments, True, x, states, mask and Given(mask, "bool", 2))


FIRST = [
    _in_function("LSTM", [(1, UNITS), (1, UNITS)]),
    _in_function("GRU", [(BATCH, UNITS)], rows=1),
    _in_function("LSTM", mask=(1, TIME)),
    _in_function("GRU", mask=(BATCH, TIME + 2)),
    _in_function("LSTM", [(BATCH, UNITS), (2, UNITS)]),
    _in_function("GRU", mask=(BATCH, 1)),
]
"""What is tried whatever is drawn; Keras refuses the last two."""


def drawn(seed: int, keras2: bool) -> Case:
    """A case."""
    if seed < len(FIRST):
        return FIRST[seed]
    pick = random.Random(seed).choice
    layer, kind = pick(LAYERS), pick(["states", "mask", "both"])
    in_function = pick([True, True, True, False])
    is_bidirectional = pick([False] * 6 + [True])
    arguments = {"return_sequences": pick([True, False])}
    if not is_bidirectional:
        arguments["go_backwards"] = pick([True, False])
        arguments["stateful"] = pick([False] * 9 + [True])
    if keras2:
        arguments["time_major"] = pick([False, False, True])
    unknown = pick(UNKNOWN)
    states = None
    if kind != "mask":
        count = (2 if "LSTM" in layer else 1) * (2 if is_bidirectional else 1)
        dtype = pick(["float32"] * 12 + ["float64", "int32"])
        axes = pick([0, 0, 0, 1] if unknown == [0] else [1] * 6 + [2])
        one = Given(pick(STATES), dtype, axes)
        own = pick([True, True, False])  # Or each has another shape.
        states = [one if own else one._replace(shape=pick(STATES)) for _ in range(count)]
        if pick([False] * 12 + [True]):
            states.append(one)
    mask = None
    if kind != "states":
        mask = Given(pick(MASKS), pick(["bool"] * 6 + ["float32", "int32"]), pick(unknown))
    x = Given((pick(ROWS), TIME, INPUT_SIZE), unknown=pick(unknown))
    zero = not is_bidirectional and pick([False, False, True])
    return Case(layer, arguments, in_function, x, states, mask, zero, is_bidirectional)
