"""What the command line does with models and with nodes of cuDNN's ops."""

import json

import pytest
import tensorflow as tf

from blockcell_tools import graph_nodes
from helpers.command_line import ROOT, run

pytest.importorskip("click")

TF2_ONLY = pytest.mark.skipif(tf.__version__.startswith("1."), reason="Keras of TensorFlow 2")


@pytest.fixture(scope="module")
def keras_file(tmp_path_factory):
    """A model with a layer that is served and one that is not."""
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            tf.keras.Input([None, 3], name="x"),
            layers.LSTM(5, return_sequences=True, name="first"),
            layers.GRU(4, activation="softmax", name="second"),
        ]
    )
    file = tmp_path_factory.mktemp("keras") / "model.h5"
    model.save(str(file))
    return file


@TF2_ONLY
def test_inspect_lists_the_layers_of_a_keras_file(keras_file):
    found = json.loads(run("inspect", keras_file, "--no-measure", "--json")[0])["nodes"]
    assert [node["name"] for node in found] == ["first", "second"]
    assert found[0]["op"] == "BlockLSTMV2" and found[0]["why_not"] is None
    assert found[0]["sizes"] == {"batch": None, "time": None, "input_size": 3, "cell_size": 5}
    assert found[1]["runs_on"] == "TensorFlow" and "activation is softmax" in found[1]["why_not"]
    printed, _ = run("inspect", keras_file, "--no-measure", "--require", code=1)
    assert "second would not run on the kernels: activation is softmax" in printed


@TF2_ONLY
def test_verify_takes_the_layers_of_a_keras_file(keras_file):
    printed, _ = run("verify", "--graph", keras_file)
    assert "1 of 1 cases are within" in printed
    assert "Left out: second: activation is softmax" in printed


@pytest.fixture(scope="module")
def cudnn_graph(tmp_path_factory):
    """A float network, the same in another node, and one in double."""

    def network(dtype, batch):
        shapes = ([None, batch, 3], [4, batch, 5], [4, batch, 5], [None])
        inputs = [tf.compat.v1.placeholder(dtype, shape) for shape in shapes]
        names = ("input", "input_h", "input_c", "params")
        tf.raw_ops.CudnnRNNV2(direction="bidirectional", **dict(zip(names, inputs)))

    with tf.Graph().as_default() as graph:
        network(tf.float32, 2)
        network(tf.float32, 2)
        network(tf.float64, 2)
    folder = tmp_path_factory.mktemp("cudnn")
    tf.io.write_graph(graph.as_graph_def(), str(folder), "graph.pb", as_text=False)
    return folder / "graph.pb"


def test_nodes_of_cudnn(cudnn_graph):
    first, _, double = graph_nodes.read(cudnn_graph)
    sizes = {"time": None, "batch": 2, "input_size": 3, "cell_size": 5, "num_layers": 2}
    assert graph_nodes.sizes_of(first) == sizes
    case = graph_nodes.case_of(first, 9, 7)
    assert case.sizes == {"time": 7, "batch": 2, "input_size": 3, "cell_size": 5}
    assert case.attributes["num_layers"] == 2 and case.attributes["input_mode"] == "linear_input"
    assert graph_nodes.why_not(first) is None
    assert "float64" in graph_nodes.why_not(double)


@pytest.mark.once
def test_verify_takes_nodes_of_cudnn(cudnn_graph):
    printed, _ = run("verify", "--graph", cudnn_graph)
    assert "1 of 1 cases are within" in printed and "CudnnRNNV2" in printed
    assert "Left out: CudnnRNNV2_2: there is no kernel for float64" in printed


def test_verify_of_cudnn_in_int8():
    printed, _ = run("verify", "--quick", "--weights", "int8", "--ops", "CudnnRNNV3", "--json")
    found = json.loads(printed)
    assert found["failed"] == 0 and found["weights"] == "int8" and found["cases"] > 10
    errors = [one["error"] for one in found["results"]]
    assert min(errors) > 1e-4


@pytest.mark.once
def test_inspect_says_where_kernels_of_cudnn_are_off(cudnn_graph):
    words = ["inspect", cudnn_graph, "--no-measure", "--json"]
    nodes = json.loads(run(*words, BLOCKCELL_CUDNN="0")[0])["nodes"]
    assert "BLOCKCELL_CUDNN=0" in nodes[0]["why_not"] and nodes[0]["runs_on"] == "TensorFlow"


def test_verify_says_what_the_passes_make():
    graph = ROOT / "examples" / "char_lm" / "graphs" / "gru_block_cell.meta"
    printed, _ = run("verify", "--graph", graph)
    assert "2 of 2 cases" in printed and "BlockcellMatMulAddN 2" in printed
