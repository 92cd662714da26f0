"""The graph pass that puts ops of this library around the cells and in place of plain ones.

MetaGraphs of cells of TensorFlow 1.15, and functions with our own gradients. Each runs in a process
with TensorFlow's kernels and graphs and in one with ours, and all gradients are compared.
"""

import numpy as np
import pytest
import tensorflow as tf

import rewrite
from blockcell_tools.reference.inputs import scaled_error
from helpers import isolated

TF1 = tf.__version__.startswith("1.")
VERSION = tuple(map(int, tf.__version__.split(".")[:2]))
OPS = ("BlockcellMatMulAddN", "BlockcellMatMulSlice", "BlockcellBiasAddGradAddN")

# How many nodes of each of these the graphs have. All products with gates are among them, so no
# MatMul is left.
NODES = {
    "lstm_static": (1, 4, 1),
    "lstm_static_peephole": (1, 4, 1),
    "lstm_static_half": (1, 4, 1),
    "lstm_static_two_layers": (2, 8, 2),
    "lstm_static_tree": (1, 4, 1),
    "lstm_one_step": (1, 1, 0),
    "lstm_shared": (1, 8, 1),
    "lstm_shared_in_loop": (1, 2, 1),
    "lstm_dynamic": (1, 1, 1),
    "lstm_dynamic_lengths": (1, 1, 1),
    "lstm_dynamic_resource": (1, 1, 1),
    "lstm_bidirectional": (2, 2, 2),
    "gru_static": (2, 0, 2),
    "gru_static_bidirectional": (4, 0, 4),
    "gru_one_step": (2, 0, 0),
    "gru_dynamic": (2, 0, 2),
    "gru_dynamic_two_layers": (4, 0, 4),
    "gru_in_cond": (2, 0, 0),
}
# Forward steps, backward steps, and these products, of graphs of plain cells.
PLAIN_OPS = ("BlockcellLSTMCell", "BlockcellLSTMCellGrad", *OPS)
PLAIN = {
    "basic_static": (4, 4, 1, 4, 1),
    "basic_static_unknown_batch": (4, 4, 1, 4, 1),
    "basic_static_half": (4, 4, 1, 4, 1),
    "basic_static_two_layers": (8, 8, 2, 8, 2),
    "basic_one_step": (1, 1, 1, 1, 0),
    "basic_stopped_output": (4, 4, 1, 4, 1),
    "basic_initial_state": (4, 4, 1, 4, 1),
    "basic_dynamic": (1, 1, 1, 1, 1),
    "basic_dynamic_lengths": (1, 1, 1, 1, 1),
    "basic_dynamic_half": (1, 1, 1, 1, 1),
    "basic_dynamic_resource": (1, 1, 1, 1, 1),
    "basic_dynamic_two_layers": (2, 2, 2, 2, 2),
    "basic_dynamic_swap": (1, 1, 1, 1, 1),
    "basic_bidirectional": (2, 2, 2, 2, 2),
    "basic_shared_in_loop": (2, 2, 1, 2, 1),
    "basic_one_row_for_many": (1, 1, 1, 1, 0),
    "basic_residual": (4, 4, 1, 4, 1),
    "plain_static": (4, 4, 1, 4, 1),
    "plain_concatenated_state": (4, 4, 1, 4, 1),
    "plain_peephole": (4, 4, 1, 4, 1),
    "plain_peephole_unknown_batch": (4, 4, 1, 4, 1),
    "plain_peephole_half": (4, 4, 1, 4, 1),
    "plain_clip": (4, 4, 1, 4, 1),
    "plain_clip_unknown_batch": (4, 4, 1, 4, 1),
    "plain_dynamic_clip": (1, 1, 1, 1, 1),
    "plain_projection": (4, 4, 1, 4, 1),
    "plain_dynamic_projection": (1, 1, 1, 1, 1),
    "plain_dynamic_peephole": (1, 1, 1, 1, 1),
    "plain_dynamic_peephole_lengths": (1, 1, 1, 1, 1),
    "plain_everything": (1, 1, 1, 1, 1),
    "plain_relu": (4, 4, 1, 4, 1),
    "plain_relu_dynamic": (1, 1, 1, 1, 1),
    "plain_relu_peephole": (1, 1, 1, 1, 1),
    "plain_relu_lists": (1, 1, 1, 1, 1),
    # What enters the state has no node of its own, which a backward step could take.
    "plain_linear": (0, 0, 0, 0, 0),
    # Loops of TensorFlow 2 keep tensors for gradients on lists.
    "basic_lists": (1, 1, 1, 1, 1),
    "basic_lists_fixed": (1, 1, 1, 1, 1),
    "basic_lists_half": (1, 1, 1, 1, 1),
    "basic_lists_two_layers": (2, 2, 2, 2, 2),
    "basic_lists_bidirectional": (2, 2, 2, 2, 2),
    "basic_lists_shared": (2, 2, 1, 2, 1),
    "plain_lists_clip": (1, 1, 1, 1, 1),
    "plain_lists_peephole": (1, 1, 1, 1, 1),
    "plain_lists_everything": (1, 1, 1, 1, 1),
}
# The optimizers of TensorFlow 2.4 to 2.16 leave a sum with zeros in the forget gate of a first step
# whose batch has no known size. Those of 1.15 and 2.18 on do not.
LEFT_FIRST = {"plain_peephole_unknown_batch": (3, 3, 1, 3, 1)}
LEFT_FIRST = LEFT_FIRST if (2, 4) <= VERSION < (2, 18) else {}
# The same with GRU cells: forward steps, the two parts of backward steps, and products.
PLAIN_GRU_OPS = ("GRUBlockCell", "BlockcellGRUCellGradC", "BlockcellGRUCellGradRU", *OPS)
PLAIN_GRU = {
    "plain_gru_static": (4, 4, 4, 2, 8, 2),
    "plain_gru_static_unknown_batch": (4, 4, 4, 2, 8, 2),
    "plain_gru_static_half": (4, 4, 4, 2, 8, 2),
    "plain_gru_dynamic": (1, 1, 1, 2, 2, 2),
    "plain_gru_dynamic_lengths": (1, 1, 1, 2, 2, 2),
    "plain_gru_dynamic_resource": (1, 1, 1, 2, 2, 2),
    "plain_gru_dynamic_two_layers": (2, 2, 2, 4, 4, 4),
    "plain_gru_bidirectional": (2, 2, 2, 4, 4, 4),
    "plain_gru_lists": (1, 1, 1, 2, 2, 2),
    "plain_gru_relu": (4, 4, 4, 2, 8, 2),
    "plain_gru_relu_dynamic": (1, 1, 1, 2, 2, 2),
    "plain_gru_relu_lists": (1, 1, 1, 2, 2, 2),
    "plain_gru_lists_half": (1, 1, 1, 2, 2, 2),
    "plain_gru_lists_lengths": (1, 1, 1, 2, 2, 2),
    "plain_gru_lists_two_layers": (2, 2, 2, 4, 4, 4),
    "plain_gru_lists_bidirectional": (2, 2, 2, 4, 4, 4),
}
# GRUBlockCell has no half, and no other functions.
HALF_GRU_OPS = ("BlockcellGRUCell", *PLAIN_GRU_OPS[1:])
PLAIN_OPS_OF = {
    **{name: dict(zip(PLAIN_OPS, counts)) for name, counts in PLAIN.items()},
    **{
        name: dict(zip(HALF_GRU_OPS if "half" in name or "relu" in name else PLAIN_GRU_OPS, counts))
        for name, counts in PLAIN_GRU.items()
    },
}
# Plain cells in wrappers and other loops; and Keras's cells, which stay.
WRAPPED = {
    "dropout_static": (4, 4, 1, 4, 1),
    "dropout_dynamic": (1, 1, 1, 1, 1),
    "dropout_variational": (1, 1, 1, 1, 1),
    "attention_dynamic": (1, 1, 1, 1, 1),
    "attention_decoder": (1, 1, 1, 1, 1),
    "raw_projection": (1, 1, 1, 1, 1),
    "raw_lists": (1, 1, 1, 1, 1),
    "keras_lstm": (0, 0, 0, 0, 0),
    "keras_lstm_joined": (1, 1, 2, 2, 1),
    "keras_gru": (0, 0, 0, 0, 0),
}
WRAPPED_OPS_OF = {
    **{name: dict(zip(PLAIN_OPS, counts)) for name, counts in WRAPPED.items()},
    **{
        name: {
            **{op: 1 for op in ("BlockcellLSTMCell", "BlockcellLSTMCellGrad", *PLAIN_GRU_OPS[:3])},
            **{op: 3 for op in OPS},
        }
        for name in ("mixed_dynamic", "mixed_lists")
    },
    # Five normalizations of each step.
    **{
        name: dict.fromkeys(("BlockcellLayerNorm", "BlockcellLayerNormGrad"), count)
        for name, count in (("layer_norm_static", 20), ("layer_norm_dropout", 5))
    },
    # What computes shapes is not folded there.
    "layer_norm_dropout_not_optimized": {},
}
OPTIMIZED = ["" if optimized else "_not_optimized" for optimized in rewrite.OPTIMIZED]
PLAIN_GRAPHS = [name + optimized for name in PLAIN_OPS_OF for optimized in OPTIMIZED]
WRAPPED_GRAPHS = [
    name + optimized
    for name in WRAPPED_OPS_OF
    for optimized in OPTIMIZED
    if "_not_optimized" not in name
]
GRAPHS = [name + optimized for name in NODES for optimized in OPTIMIZED]

# The same of functions with our own gradients.
FUNCTIONS = {
    "function_lstm": (1, 4, 1),
    "function_loop_lstm": (1, 1, 1),
    "function_gru": (2, 0, 2),
    "function_loop_gru": (2, 0, 2),
}
FUNCTIONS = {} if TF1 else FUNCTIONS
# And of plain cells. A GRU's step needs weights of known shapes, as those of variables are.
PLAIN_FUNCTIONS = {
    "function_basic": dict(zip(PLAIN_OPS, (4, 4, 1, 4, 1))),
    "function_loop_basic": dict(zip(PLAIN_OPS, (1, 1, 1, 1, 1))),
    "function_variables_basic": dict(zip(PLAIN_OPS, (1, 1, 1, 1, 1))),
    "function_loop_plain_gru": dict(zip(PLAIN_GRU_OPS, (1, 1, 1, 2, 2, 2))),
    "function_variables_plain_gru": dict(zip(PLAIN_GRU_OPS, (1, 1, 1, 2, 2, 2))),
    # The two loops are in two functions then.
    "function_outside_basic": {"BlockcellLSTMCell": 1},
    "function_outside_plain_gru": {},
}
PLAIN_FUNCTIONS = {} if TF1 else PLAIN_FUNCTIONS
ALL = GRAPHS + PLAIN_GRAPHS + WRAPPED_GRAPHS + list(FUNCTIONS) + list(PLAIN_FUNCTIONS)


@pytest.fixture(scope="module")
def stock():
    return isolated.run("rewrite", ALL, {"BLOCKCELL_OVERRIDE": "0"})


@pytest.fixture(scope="module")
def rewritten():
    return isolated.run("rewrite", ALL, {"BLOCKCELL_REWRITE": None})


def assert_same_gradients(name, got, want):
    limit = 4e-3 if "half" in name else 4e-6
    assert len(got["values"]) == len(want["values"])
    for k, value in enumerate(want["values"]):
        assert np.abs(value).max() > 1e-3, f"gradient {k} is zero"
        error = scaled_error(got["values"][k], value)
        assert error <= limit, f"gradient {k}: scaled error {error:.3g} is above {limit:.3g}"


@pytest.mark.parametrize("name", GRAPHS)
def test_gradients_of_contrib(stock, rewritten, name):
    got, want = isolated.value(rewritten[name]), isolated.value(stock[name])
    nodes = dict(zip(OPS, NODES[name.replace("_not_optimized", "")]))
    assert {op: got["ops"].get(op, 0) for op in OPS} == nodes
    assert of_products(got) == nodes
    assert "MatMul" not in got["ops"]
    assert not any(op.startswith("Blockcell") for op in want["ops"])
    assert not any(want["rewritten"].values())
    assert_same_gradients(name, got, want)


@pytest.mark.parametrize("name", PLAIN_GRAPHS)
def test_gradients_of_plain_cells(stock, rewritten, name):
    got, want = isolated.value(rewritten[name]), isolated.value(stock[name])
    plain = name.replace("_not_optimized", "")
    nodes = PLAIN_OPS_OF[plain]
    whole = nodes.get("BlockcellLSTMCellGrad", 0) == nodes.get("BlockcellLSTMCell") != 0
    if name in LEFT_FIRST:
        nodes = dict(zip(nodes, LEFT_FIRST[name]))
    assert {op: count for op, count in got["rewritten"].items() if count} == {
        op: count for op, count in nodes.items() if count
    }
    assert {op: got["ops"].get(op, 0) for op in nodes} == nodes
    if whole and got["rewritten"]["BlockcellLSTMCell"] == PLAIN[plain][0]:
        assert not {"Split", "Tanh", "TanhGrad"} & set(got["ops"])
    assert not any(op.startswith("Blockcell") for op in want["ops"])
    assert_same_gradients(name, got, want)


@pytest.mark.parametrize("name", WRAPPED_GRAPHS)
def test_gradients_of_wrapped_cells(stock, rewritten, name):
    got, want = isolated.value(rewritten[name]), isolated.value(stock[name])
    nodes = WRAPPED_OPS_OF.get(name, WRAPPED_OPS_OF[name.replace("_not_optimized", "")])
    assert {op: got["rewritten"][op] for op in nodes} == nodes
    assert sum(got["rewritten"].values()) == sum(nodes.values())
    assert not any(want["rewritten"].values())
    assert_same_gradients(name, got, want)


def of_products(result):
    """Which ops for products the library has put into graphs; no others are expected."""
    assert not any(count for op, count in result["rewritten"].items() if op not in OPS)
    return {op: result["rewritten"][op] for op in OPS}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_in_functions(stock, rewritten, name):
    got, want = isolated.value(rewritten[name]), isolated.value(stock[name])
    assert of_products(got) == dict(zip(OPS, FUNCTIONS[name]))
    assert not any(want["rewritten"].values())
    assert_same_gradients(name, got, want)


@pytest.mark.parametrize("name", PLAIN_FUNCTIONS)
def test_gradients_of_plain_cells_in_functions(stock, rewritten, name):
    got, want = isolated.value(rewritten[name]), isolated.value(stock[name])
    assert {op: count for op, count in got["rewritten"].items() if count} == PLAIN_FUNCTIONS[name]
    assert not any(want["rewritten"].values())
    assert_same_gradients(name, got, want)


def test_switched_off():
    name = "lstm_static"
    got = isolated.value(isolated.run("rewrite", [name], {"BLOCKCELL_REWRITE": "0"})[name])
    assert not any(got["rewritten"].values())
    assert not any(op.startswith("Blockcell") for op in got["ops"])


@pytest.mark.parametrize(
    ("environment", "rewrite"),
    [
        ({}, "on"),
        ({"BLOCKCELL_REWRITE": "1"}, "on"),
        ({"BLOCKCELL_REWRITE": "0"}, "off"),
        ({"BLOCKCELL_OVERRIDE": "0"}, "off"),
        ({"BLOCKCELL_REWRITE": "yes"}, "on"),
    ],
)
def test_info(environment, rewrite):
    variables = dict({"BLOCKCELL_REWRITE": None, "BLOCKCELL_OVERRIDE": None}, **environment)
    answer, complaints = isolated.value(isolated.run("rewrite_info", ["info"], variables)["info"])
    assert answer["rewrite"] == rewrite
    layers = {"BlockcellLSTMLayer", "BlockcellGRULayer", "BlockcellKerasLSTM", "BlockcellKerasGRU"}
    normalized = {"BlockcellLayerNormLSTMCell", "BlockcellLayerNormLSTMLayer"}
    normalized |= {"BlockcellLayerNorm", "BlockcellLayerNormGrad"}
    cudnn = {"CudnnRNN", "CudnnRNNBackprop", "CudnnRNNBackpropV3", "CudnnRNNV3"}
    assert set(answer["rewritten"]) == {
        *(PLAIN_OPS + PLAIN_GRU_OPS + HALF_GRU_OPS),
        *layers,
        *normalized,
        *cudnn,
    }
    assert not any(answer["rewritten"].values())
    said = complaints.count("BLOCKCELL_REWRITE")
    assert said == (environment.get("BLOCKCELL_REWRITE") == "yes")
