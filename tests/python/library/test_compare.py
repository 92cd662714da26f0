"""`blockcell compare`: models of each kind, and programs."""

import json
import tarfile

import numpy as np
import pytest
import tensorflow as tf

from blockcell_tools import charts, cudnn_calls
from blockcell_tools.comparison import report, results, steps
from blockcell_tools.comparison.models import kind_of
from blockcell_tools.reference import cudnn, cudnn_inputs
from helpers.command_line import ROOT, documented, run

pytest.importorskip("click")

TF1 = tf.__version__.startswith("1.")
TF2_ONLY = pytest.mark.skipif(TF1, reason="Keras of TensorFlow 2")
KERAS_2 = ROOT / "tests" / "python" / "graph_pass" / "keras2"
GRAPHS = ROOT / "examples" / "char_lm" / "graphs"
QUICK = ("--threads", "1", "--seconds", "0.05", "--batch", "3", "--time", "4")


# Models.


@TF2_ONLY
def test_keras_file(tmp_path):
    """A model with a layer that is served and one that is not; all that is written."""
    layers = tf.keras.layers
    first = layers.LSTM(5, return_sequences=True, name="first")
    second = layers.GRU(4, activation="softmax", name="second")
    model = tf.keras.Sequential([tf.keras.Input([None, 3], name="x"), first, second])
    model.save(str(tmp_path / "model.h5"))
    words = ["compare", tmp_path / "model.h5", *QUICK, "--check-ratio", "1000"]
    words += ["--report", tmp_path / "all.json", "--html", tmp_path / "all.html"]
    printed, said = run(*words, code=1)
    assert "below the ratio of 1000" in said
    assert "calls in each step: BlockcellKerasLSTM 1." in printed
    assert "Not on the kernels: second: activation is softmax" in printed
    found = json.loads((tmp_path / "all.json").read_text())
    assert found["ran"] == {"BlockcellKerasLSTM": 1} and found["largest_difference"] < 1e-5
    assert found["agrees"] and found["kind"] == "file of Keras"
    assert set(found) == documented("compare") - {"notes"}
    assert found["memory"]["ours"] > found["memory"]["without"] / 2 > 0
    page = (tmp_path / "all.html").read_text()
    assert "<svg" in page and found["advice"] in page and "src=" not in page


@TF2_ONLY
def test_weights_in_int8(tmp_path):
    """What int8 costs, layer by layer, and in answers."""
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            tf.keras.Input([20, 40], name="x"),
            layers.LSTM(64, return_sequences=True, name="first"),
            layers.GRU(48, name="second"),
            layers.Dense(3, activation="softmax"),
        ]
    )
    model.save(str(tmp_path / "model.h5"))
    x = np.random.RandomState(0).uniform(-1, 1, (300, 20, 40)).astype(np.float32)
    np.savez(str(tmp_path / "sample.npz"), x=x)
    words = ["compare", tmp_path / "model.h5", "--data", tmp_path / "sample.npz", *QUICK[:4]]
    printed, _ = run(*words, "--weights", "int8", "--report", tmp_path / "all.json")
    found = json.loads((tmp_path / "all.json").read_text())
    assert found["weights"] == "int8" and found["agrees"]
    assert list(found["layers"]) == ["first", "second"]
    for errors in found["layers"].values():
        assert errors["calls"] == 1 and 1e-5 < errors["mean"] < errors["largest"] < 5e-2
    [answers] = found["answers"]
    assert answers["of"] == 300 and 0 <= answers["changed"] < 30
    assert "In int8: first (BlockcellKerasLSTM), largest error" in printed
    assert f"Changed predictions: {answers['changed']} of 300" in printed
    assert "within the limit of int8" in printed
    assert 0 < found["kept_weight_bytes"] < 0.3 * sum(4 * w.size for w in model.get_weights())
    assert "Cached packed weights: " in printed
    assert 'blockcell.load(weights="int8") and blockcell.keras.enable()' in found["advice"] or (
        "To use it" not in found["advice"]
    )


@pytest.fixture
def graph_of_cudnn(tmp_path):
    """A frozen graph of a network made for cuDNN, as `tf.contrib.cudnn_rnn` writes it."""
    network = cudnn.Network("lstm", 64, 40)
    inputs = cudnn_inputs.inputs_of(network, 20, 3)
    names = cudnn_calls.FORWARD_INPUTS[1:4]
    with tf.Graph().as_default() as graph:
        tensors = {name: tf.constant(inputs[name]) for name in names}
        tensors["input"] = tf.compat.v1.placeholder(tf.float32, [None, 3, 40], name="x")
        with tf.name_scope("layer"):
            outputs = cudnn_calls.forward_op(2, tensors, is_training=False, **network.attributes)
        tf.identity(outputs["output"], name="results")
    tf.io.write_graph(graph.as_graph_def(), str(tmp_path), "graph.pb", as_text=False)
    np.savez(str(tmp_path / "sample.npz"), x=inputs["input"])
    return tmp_path / "graph.pb"


def test_weights_of_cudnn_in_int8(graph_of_cudnn):
    """TensorFlow has no kernels on CPUs: the baseline is the library in float32."""
    words = ["compare", graph_of_cudnn, "--data", graph_of_cudnn.parent / "sample.npz"]
    _, said = run(*words, *QUICK[:4], code=2)
    assert "TensorFlow has no kernels of cuDNN's ops on CPUs" in said
    found = json.loads(run(*words, *QUICK[:4], "--weights", "int8", "--json")[0])
    [(name, errors)] = found["layers"].items()
    assert name == "layer/CudnnRNNV2" == "layer/" + errors["op"]
    assert 1e-5 < errors["mean"] < errors["largest"] < 5e-2
    assert 1e-5 < found["largest_difference"] < 5e-2 and found["agrees"]
    assert "blockcell's in float32" in found["notes"][0]
    assert 0 < found["kept_weight_bytes"] < 0.31 * 4 * (40 + 64) * 256


@pytest.mark.parametrize(
    "ours, theirs, changed",
    [
        ([[0.4, 0.6], [0.9, 0.1]], [[0.6, 0.4], [0.8, 0.2]], (1, 2)),
        ([[0.4], [0.7], [0.2]], [[0.6], [0.8], [0.1]], (1, 3)),
        ([[1.5, 0.2]], [[1.4, 0.1]], None),
        ([0.1, 0.9], [0.2, 0.8], None),
        ([[0.3, 0.3]], [[0.2, 0.3]], None),
    ],
)
def test_answers(ours, theirs, changed):
    found = results.answers_of("p", np.array(ours), np.array(theirs))
    assert (found and found[1:]) == changed


@pytest.mark.skipif(
    TF1 or not hasattr(tf.keras.layers.LSTM, "inner_loop"), reason="needs use_cudnn of Keras 3"
)
def test_keras_layers_that_only_the_graph_passes_serve(tmp_path):
    layers = [tf.keras.layers.GRU(4, use_cudnn=False, name="second")]
    layers = [tf.keras.Input([None, 3]), tf.keras.layers.LSTM(5, return_sequences=True), *layers]
    tf.keras.Sequential(layers).save(str(tmp_path / "model.keras"))
    printed, _ = run("compare", tmp_path / "model.keras", *QUICK)
    assert "calls in each step: BlockcellKerasGRU 1, BlockcellKerasLSTM 1." in printed
    assert "Not on the kernels" not in printed


@TF2_ONLY
@pytest.mark.parametrize(
    "by_passes, want",
    [
        (0, [["b", "unroll is True"], ["c", "unroll is True"]]),
        (1, [[name, "unroll is True; graph passes replace 1 of 2 such layers"] for name in "bc"]),
        (2, []),
    ],
)
def test_layers_that_are_not_on_the_kernels(by_passes, want):
    from blockcell.keras import LayerReport
    from blockcell_tools.comparison.model_side import _not_on_kernels

    report = [LayerReport("a", "LSTM", "blockcell", 1, "")]
    report += [LayerReport(name, "GRU", "keras", 0, "unroll is True") for name in "bc"]
    assert _not_on_kernels(report, by_passes) == want


@pytest.mark.once
def test_saved_model(tmp_path):
    with tarfile.open(str(KERAS_2 / "2.4-lstm.tar.xz")) as archive:
        archive.extractall(str(tmp_path))
    folder = next(tmp_path.rglob("saved_model.pb")).parent
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        load = tf.compat.v1.saved_model.load
        inputs = load(session, ["serve"], str(folder)).signature_def["serving_default"].inputs
    (name,) = inputs
    size = inputs[name].tensor_shape.dim[2].size
    np.savez(str(tmp_path / "inputs.npz"), **{name: np.ones([2, 3, size], "f")})
    words = ["compare", folder, *QUICK, "--inputs"]
    found = json.loads(run(*words, tmp_path / "inputs.npz", "--json")[0])
    assert "CudnnRNN" in found["ran"] and found["agrees"]
    np.savez(str(tmp_path / "others.npz"), other=0)
    _, said = run(*words, tmp_path / "others.npz", code=2)
    assert f"others.npz has no input {name}" in said


def test_graph_that_trains():
    """Its variables are compared after some steps, from the same random beginning."""
    words = ["compare", GRAPHS / "gru_block_cell.meta", "--json", "--threads", "1"]
    found = json.loads(run(*words, "--seconds", "0.05")[0])
    assert found["rows"][0]["step"] == "a training step"
    assert found["ran"]["GRUBlockCellGrad"] == found["ran"]["GRUBlockCell"] > 0
    assert 0 < found["largest_difference"] < 1e-5


@pytest.mark.once
def test_what_is_no_model(tmp_path):
    _, said = run("compare", tmp_path / "nothing.keras", code=2)
    assert said.strip() == f"blockcell: there is no file {tmp_path / 'nothing.keras'}"
    for other in (ROOT / "README.md", ROOT / "docs"):
        _, said = run("compare", other, code=2)
        assert said.startswith(f"blockcell: {other} is not a Keras file (.keras, .h5), the fold")
        assert len(said.splitlines()) == 1
    _, said = run("compare", GRAPHS / "gru_block_cell.meta", "--target", "nosuch", *QUICK, code=2)
    assert "nosuch" in said and len(said.splitlines()) == 1, said
    assert "only a program takes arguments" in run("compare", ROOT / "docs", "--", "x", code=2)[1]


def test_kinds(tmp_path):
    (tmp_path / "saved_model.pb").write_text("")
    names = {
        "a.keras": "file of Keras",
        "a.h5": "file of Keras",
        "a.pb": "graph",
        "a.meta": "graph",
    }
    assert {name: kind_of(name) for name in names} == names
    assert kind_of(tmp_path) == "SavedModel" and kind_of(ROOT) is None and kind_of("a.onnx") is None


# Programs.

PROGRAM = """
import sys
import numpy as np
import tensorflow as tf

assert sys.argv[1:] == ["--epochs", "2"]
x = np.random.rand(12, 5, 3).astype("f")
if not tf.__version__.startswith("1."):
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.LSTM(4), layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(x, x[:, 0, :1], epochs=2, batch_size=4, verbose=0)
    model.predict(x, verbose=0)

    @tf.function
    def double(x):
        return 2.0 * x

    for _ in range(3):
        double(tf.constant(x))
with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    fed = tf.compat.v1.placeholder(tf.float32, [12, 5])
    weights = dict(w_ru=tf.zeros([10, 10]), w_c=tf.zeros([10, 5]))
    biases = dict(b_ru=tf.ones([10]), b_c=tf.ones([5]))
    cell = tf.raw_ops.GRUBlockCell(x=fed, h_prev=fed, **weights, **biases)
    mean = tf.reduce_mean(cell.h + tf.random.normal([12, 5]), name="mean")
    for _ in range(4):
        session.run([mean], {fed: x[:, :, 0]})
"""


def test_program(tmp_path):
    """Its batches, functions and sessions are timed, and its random numbers are the same."""
    (tmp_path / "train.py").write_text(PROGRAM)
    words = ["compare", tmp_path / "train.py", "--json", "--", "--epochs", "2"]
    found = json.loads(run(*words)[0])
    assert found["agrees"] and found["kind"] == "program"
    assert set(found) == documented("compare") - {"call", "kept_weight_bytes"}
    rows = {row["step"]: row["steps"] for row in found["rows"]}
    assert rows["Session.run of mean:0"] == 3
    assert found["ran"]["GRUBlockCell"] == 4
    losses = found["losses"]["Session.run of mean:0: mean:0"]
    assert len(set(losses["ours"])) == 4 and losses["ours"] == pytest.approx(losses["without"])
    if not TF1:
        assert rows["fit, a batch"] == 5 and found["ran"]["BlockLSTMGradV2"] == 6
        # Its first step is what is compared; with more kinds it may not be shown.
        compared = [one["what"] for one in found["differences"]]
        assert "double (tf.function): result of the first step" in compared
        assert any(what.startswith("predict, a batch") for what in compared)


@pytest.mark.once
@pytest.mark.parametrize(
    "code, ends, complaint",
    [
        ("raise ValueError('mine')", 2, "ended with 1 without blockcell:"),
        ("import blockcell, tensorflow; blockcell.load()", 2, "the program loads blockcell itself"),
        (
            "import random, tensorflow as tf\n"
            "for _ in range(2): tf.function(lambda x: x)(random.SystemRandom().random())",
            1,
            "the results differ: <lambda> (tf.function)",
        ),
    ],
)
def test_programs_that_cannot_be_compared(code, ends, complaint, tmp_path):
    (tmp_path / "program.py").write_text(code)
    _, said = run("compare", tmp_path / "program.py", code=ends)
    assert complaint in said and "comparison/" not in said


# Parts.


def test_recorder_takes_what_is_outermost():
    told = []
    recorder = steps.Recorder(told.append)

    def outer(loss):
        recorder.step("inner", lambda: 1.0)
        return {"loss": loss, "array": np.full([2], loss, "f"), "count": 3}

    for loss in (0.5, 0.25):
        recorder.step("outer", lambda: outer(loss))  # noqa: B023 (called at once)
    (kind,) = recorder.kinds.values()
    assert told == [1, 2] and len(kind.seconds) == 2
    assert kind.losses == {"loss": [0.5, 0.25]}
    assert list(kind.outputs) == ["array"] and (kind.outputs["array"] == 0.5).all()


def found_with(ratio, **fields):
    rows = [results.row_of("a call", 1, [ratio, ratio * 1.1, ratio * 0.9], [1.0, 1.0, 1.0])]
    values = dict(about={"use": "do it"}, kind="graph", rows=rows, memory={}, ran={"op": 1})
    values.update(stays=[], differences=[], losses={}, seconds={})
    return results.Found(**dict(values, **fields))


def test_advice():
    assert "2.00 times as fast with blockcell. To use it, do it." in found_with(2.0).advice()
    assert "Slower with blockcell: 0.50" in found_with(0.5).advice()
    assert "No difference: 1.00" in found_with(1.0).advice()
    assert "Nothing runs" in found_with(2.0, ran={}).advice()
    for error in (1.0, float("nan")):
        differs = found_with(2.0, differences=[results.Difference("results", error)])
        assert not differs.agrees and "differ" in differs.advice()


def test_charts_are_svg():
    bars = charts.bars([("a<b", [charts.Bar(2.0, "2 ms", (1.5, 2.5))])], ["without"], mark=1.0)
    assert bars.startswith("<svg") and "a&lt;b" in bars and bars.count("<rect") == 3
    assert "<polyline" in charts.lines("loss", [("without", [1.0, float("nan"), 0.5])])
    assert len(report.COLUMNS) > report.TEXTS
