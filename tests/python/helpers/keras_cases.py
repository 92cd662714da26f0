"""Calls of Keras layers that the kernels serve: what the layers are made of, and what they get."""

from typing import Any, Dict, List, NamedTuple, Optional

LAYERS = {
    "LSTM": ("LSTM", {}),
    "GRU": ("GRU", {"reset_after": True}),
    "GRU_reset_before": ("GRU", {"reset_after": False}),
    "RNN_LSTMCell": ("LSTMCell", {}),
    "RNN_GRUCell": ("GRUCell", {"reset_after": True}),
}
"""By name: the class, and arguments that it always gets. A cell is put into an `RNN`."""
OF_CELL = (
    *("use_bias", "dropout", "recurrent_dropout", "reset_after"),
    *("activation", "recurrent_activation", "dtype"),
)
"""Arguments that a cell gets. An `RNN` gets the others and the last one."""

ALL = {"return_sequences": True, "return_state": True}
RELU = dict(ALL, activation="relu")

# Four rows of five steps; 1 is a step that counts.
MASKS = {
    "right_padded": ["11100", "11111", "10000", "11110"],
    "left_padded": ["00111", "11111", "00001", "01111"],
    "with_gaps": ["10110", "00000", "01010", "11111"],
    "without_steps": ["00000"] * 4,
}
"""Masks by name, a string for each row."""


class Case(NamedTuple):
    """A layer and a call."""

    arguments: Dict[str, Any] = {}
    """The layer's, beside `units`."""
    mask: Optional[str] = None
    """A name in `MASKS`."""
    training: bool = False
    initial_state: bool = False
    calls: int = 1
    """How often the layer is called, on other inputs each time."""
    sizes: List[int] = [4, 5, 3, 6]
    """Batch, time, input size, units."""
    zero_output_for_mask: bool = False
    """The attribute that `Bidirectional` sets."""
    bidirectional: Optional[Dict[str, Any]] = None
    """Arguments of `Bidirectional` around the layer."""
    keras2: bool = False
    """Whether the arguments are those of Keras 2 only."""
    limit: float = 2e-5
    """The scaled error to accept."""


CASES = {
    "plain": Case(),
    "sequences_and_states": Case(ALL),
    "no_bias": Case(dict(ALL, use_bias=False)),
    "go_backwards": Case(dict(ALL, go_backwards=True)),
    "initial_state": Case(ALL, initial_state=True),
    "stateful": Case(dict(ALL, stateful=True), calls=2),
    "dropout": Case(dict(ALL, dropout=0.4), training=True),
    "dropout_no_bias": Case(dict(ALL, dropout=0.4, use_bias=False), training=True),
    "dropout_at_inference": Case(dict(ALL, dropout=0.4, recurrent_dropout=0.3)),
    "half": Case(dict(ALL, dtype="mixed_float16"), limit=1e-2),
    "half_and_mask": Case(dict(ALL, dtype="mixed_float16"), "with_gaps", limit=1e-2),
    "sizes_of_one": Case(ALL, sizes=[1, 1, 1, 1]),
    "sizes_across_lanes": Case(ALL, sizes=[9, 3, 17, 33]),
    "time_major": Case(dict(ALL, time_major=True), keras2=True),
    "time_major_and_mask": Case(dict(ALL, time_major=True), "with_gaps", keras2=True),
    "mask_of_right_padding": Case(ALL, "right_padded"),
    "mask_of_left_padding": Case(ALL, "left_padded"),
    "mask_with_gaps": Case(ALL, "with_gaps", initial_state=True),
    "mask_without_steps": Case(ALL, "without_steps", initial_state=True),
    "mask_last_output": Case({}, "with_gaps", initial_state=True),
    "mask_go_backwards": Case(dict(ALL, go_backwards=True), "with_gaps"),
    "mask_of_right_padding_go_backwards": Case(dict(ALL, go_backwards=True), "right_padded"),
    "mask_zero_output": Case(ALL, "with_gaps", zero_output_for_mask=True),
    "mask_zero_last_output": Case({}, "with_gaps", zero_output_for_mask=True),
    "bidirectional": Case(ALL, bidirectional={}),
    "bidirectional_sum_and_mask": Case(
        {"return_sequences": True}, "right_padded", bidirectional={"merge_mode": "sum"}
    ),
    "bidirectional_mask_last_output": Case({}, "with_gaps", bidirectional={}),
    "relu": Case(RELU),
    "relu_across_lanes": Case(RELU, sizes=[9, 3, 17, 33]),
    "relu_and_mask": Case(RELU, "with_gaps", initial_state=True),
    "relu_mask_last_output": Case({"activation": "relu"}, "left_padded"),
    "relu_go_backwards": Case(dict(RELU, go_backwards=True), "right_padded"),
    "relu_half": Case(dict(RELU, dtype="mixed_float16"), "right_padded", limit=1e-2),
    "relu_dropout": Case(dict(RELU, dropout=0.4), training=True),
    "hard_sigmoid": Case(dict(ALL, recurrent_activation="hard_sigmoid"), sizes=[5, 4, 9, 17]),
    "hard_sigmoid_and_mask": Case(
        dict(RELU, recurrent_activation="hard_sigmoid", use_bias=False), "with_gaps"
    ),
    "softsign": Case(dict(ALL, activation="softsign"), "right_padded"),
    "softplus": Case(dict(ALL, activation="softsign", recurrent_activation="softplus")),
    "elu": Case(dict(ALL, activation="elu"), sizes=[5, 4, 9, 17]),
    "selu": Case(dict(ALL, activation="selu", use_bias=False), "with_gaps"),
    "linear": Case(dict(ALL, activation=None, stateful=True), calls=2),
    "exchanged": Case(
        dict(ALL, activation="sigmoid", recurrent_activation="tanh"), bidirectional={}
    ),
}
"""By name; each is for all layers."""
_OF_RNN = (
    *("sequences_and_states", "no_bias", "go_backwards", "initial_state", "stateful", "dropout"),
    "dropout_at_inference",
    *("half", "time_major", "mask_with_gaps", "mask_zero_output", "bidirectional"),
    *("relu", "hard_sigmoid"),
)


def names(keras2):
    """Names `LAYER-CASE` of all layers and cases that this Keras has."""
    for layer in LAYERS:
        for name, case in CASES.items():
            is_tried = name in _OF_RNN or not layer.startswith("RNN")
            if is_tried and (keras2 or not case.keras2):
                yield layer, name
