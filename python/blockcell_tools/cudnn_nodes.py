"""Nodes of cuDNN's ops, whose attributes choose their shapes: see `graph_nodes`."""

from typing import Any, Dict, List, Optional

from blockcell_tools.cudnn_verification import OPS

ATTRIBUTES = ("rnn_mode", "input_mode", "direction", "dropout", "time_major", "num_proj")
_INPUTS = ("input", "input_h", "input_c", "params", "sequence_lengths")


def input_names(op: str) -> List[str]:
    """The names of the first inputs of an op, those that the forward pass has."""
    version, _ = OPS[op]
    return list(_INPUTS if version == 3 else _INPUTS[:4])


def sizes(shapes: Dict[str, Any], attributes: Dict[str, Any]) -> Dict[str, Optional[int]]:
    """time, batch, input_size, cell_size and num_layers, as far as the inputs' shapes tell them."""
    found: Dict[str, Optional[int]] = dict.fromkeys(
        ("time", "batch", "input_size", "cell_size", "num_layers")
    )
    time_major = attributes.get("time_major", True)
    x, state = shapes.get("input"), shapes.get("input_h")
    if x is not None and len(x) == 3:
        order = ("time", "batch") if time_major else ("batch", "time")
        found.update(zip((*order, "input_size"), x))
    is_lstm = attributes.get("rnn_mode", "lstm") == "lstm"
    cells = shapes.get("input_c") if is_lstm else state
    if cells is not None and len(cells) == 3:
        found["cell_size"] = cells[2]
    if state is not None and len(state) == 3:
        layers, batch = state[:2] if time_major else state[1::-1]
        if layers is not None:
            found["num_layers"] = layers // directions(attributes)
        if found["batch"] is None:
            found["batch"] = batch
    return found


def directions(attributes: Dict[str, Any]) -> int:
    """1 or 2."""
    return 2 if attributes.get("direction") == "bidirectional" else 1


def attributes_of_case(attributes: Dict[str, Any], known: Dict[str, int]) -> Dict[str, Any]:
    """The attributes of a `verification.Case`, whose number of layers is taken out of the sizes."""
    skips = attributes["input_mode"] == "skip_input" or (
        attributes["input_mode"] == "auto_select" and known["input_size"] == known["cell_size"]
    )
    found = {
        "rnn_mode": attributes["rnn_mode"],
        "input_mode": "skip_input" if skips else "linear_input",
        "direction": attributes["direction"],
        "num_layers": known.pop("num_layers"),
    }
    if not attributes.get("time_major", True):
        found["time_major"] = False
    if attributes.get("num_proj"):
        found["num_proj"] = attributes["num_proj"]
    return found
