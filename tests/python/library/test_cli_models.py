"""What the command line does with models and with nodes of cuDNN's ops."""

import json
import tarfile

import numpy as np
import pytest
import tensorflow as tf

from blockcell_tools import graph_nodes
from helpers.command_line import ROOT, run

pytest.importorskip("click")

TF2_ONLY = pytest.mark.skipif(tf.__version__.startswith("1."), reason="Keras of TensorFlow 2")
KERAS_2 = ROOT / "tests" / "python" / "graph_pass" / "keras2"
QUICK = ("--threads", "1", "--seconds", "0.05", "--batch", "3", "--time", "4")


@pytest.fixture(scope="module")
def keras_file(tmp_path_factory):
    """A model with a layer that is served and one that is not."""
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            tf.keras.Input([None, 3], name="x"),
            layers.LSTM(5, return_sequences=True, name="first"),
            layers.GRU(4, activation="relu", name="second"),
        ]
    )
    file = tmp_path_factory.mktemp("keras") / "model.h5"
    model.save(str(file))
    return file


@pytest.fixture(scope="module")
def saved_model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keras_2")
    with tarfile.open(str(KERAS_2 / "2.4-lstm.tar.xz")) as archive:
        archive.extractall(str(folder))
    return next(folder.rglob("saved_model.pb")).parent


@TF2_ONLY
def test_inspect_lists_the_layers_of_a_keras_file(keras_file):
    found = json.loads(run("inspect", keras_file, "--no-measure", "--json")[0])["nodes"]
    assert [node["name"] for node in found] == ["first", "second"]
    assert found[0]["op"] == "BlockLSTMV2" and found[0]["why_not"] is None
    assert found[0]["sizes"] == {"batch": None, "time": None, "input_size": 3, "cell_size": 5}
    assert found[1]["runs_on"] == "TensorFlow" and "activation is relu" in found[1]["why_not"]
    printed, _ = run("inspect", keras_file, "--no-measure", "--require", code=1)
    assert "second would not run on the kernels: activation is relu" in printed


@TF2_ONLY
def test_verify_takes_the_layers_of_a_keras_file(keras_file):
    printed, _ = run("verify", "--graph", keras_file)
    assert "1 of 1 cases are as accurate" in printed
    assert "Left out: second: activation is relu" in printed


@TF2_ONLY
def test_bench_of_a_keras_file(keras_file, tmp_path):
    words = ["bench", "--model", keras_file, *QUICK, "--output", tmp_path]
    printed, _ = run(*words, "--check-ratio", "1000", code=1)
    assert "below the ratio of 1000" in printed
    assert "Kernels in a call: BlockcellKerasLSTM 1." in printed
    assert "Not on blockcell: second: activation is relu" in printed
    found = json.loads((tmp_path / "model-model.json").read_text())
    assert found["ran"] == {"BlockcellKerasLSTM": 1} and found["rows"][0]["error"] < 1e-5


@pytest.mark.once
def test_bench_of_a_saved_model(saved_model, tmp_path):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        load = tf.compat.v1.saved_model.load
        inputs = load(session, ["serve"], str(saved_model)).signature_def["serving_default"].inputs
    (name,) = inputs
    size = inputs[name].tensor_shape.dim[2].size
    np.savez(str(tmp_path / "inputs.npz"), **{name: np.ones([2, 3, size], "f")})
    words = ["bench", "--model", saved_model, *QUICK, "--output", tmp_path]
    printed, _ = run(*words, "--inputs", tmp_path / "inputs.npz")
    assert "Kernels in a call: CudnnRNN " in printed
    np.savez(str(tmp_path / "others.npz"), other=0)
    _, said = run(*words, "--inputs", tmp_path / "others.npz", code=2)
    assert f"others.npz has no input {name}" in said


@pytest.mark.once
def test_bench_says_what_it_cannot_read(tmp_path):
    _, said = run("bench", "--model", tmp_path / "nothing.keras", code=2)
    assert said.strip() == f"blockcell: there is no file {tmp_path / 'nothing.keras'}"
    (tmp_path / "empty.h5").write_text("")
    _, said = run("bench", "--model", tmp_path / "empty.h5", *QUICK, code=2)
    assert said.startswith("blockcell: ") and len(said.splitlines()) == 1, said


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
    assert "1 of 1 cases are as accurate" in printed and "CudnnRNNV2" in printed
    assert "Left out: CudnnRNNV2_2: there is no kernel for float64" in printed


def test_verify_says_what_the_passes_make():
    graph = ROOT / "examples" / "char_lm" / "graphs" / "gru_block_cell.meta"
    printed, _ = run("verify", "--graph", graph)
    assert "2 of 2 cases" in printed and "BlockcellMatMulAddN 2" in printed
