"""The command line, each command in a process of its own."""

import collections
import gzip
import json
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import blockcell
from blockcell.op_table import OPS
from blockcell_tools import cudnn_verification, graph_nodes, verification
from blockcell_tools.bench import client_rows, memory, page, report, rows, shapes
from blockcell_tools.bench import run as measuring
from helpers.command_line import ROOT, documented, run

pytest.importorskip("click")

TF1 = tf.__version__.startswith("1.")
FOLDER = blockcell.find_library().parent
FAILPOINTS = FOLDER.parent / "failpoints" / FOLDER.name / "libblockcell.so"
GRAPH = ROOT / "examples" / "char_lm" / "graphs" / "gru_block_cell.meta"
PLAIN_GRAPHS = ROOT / "tests" / "python" / "graph_pass" / "layers"
KERAS_2 = ROOT / "tests" / "python" / "graph_pass" / "keras2"


def test_help_lists_the_commands_without_tensorflow(tmp_path):
    printed, _ = run("--help", **without_packages(tmp_path))
    for name in ("compare", "run", "info", "verify", "inspect", "bench", "build"):
        assert f"  {name} " in printed


def without_packages(folder):
    """Variables of an environment without TensorFlow and NumPy."""
    for name in ("tensorflow", "numpy"):
        (folder / (name + ".py")).write_text(f"raise ImportError('no {name} here', name='{name}')")
    return {"PYTHONPATH": str(folder)}


@pytest.mark.once
def test_info_without_tensorflow(tmp_path):
    variables = without_packages(tmp_path)
    printed, complaint = run("info", "--json", code=2, **variables)
    answer = json.loads(printed)
    assert answer["version"] == blockcell.__version__ and not answer["loaded"]
    assert set(answer) == {*blockcell.info(), "machine"}
    assert answer["machine"]["real_cores"] is None and answer["machine"]["cores"] > 0
    assert (
        len(complaint.splitlines()) == 1 and "cannot import TensorFlow (no tensorflow" in complaint
    )
    assert blockcell.__version__ in run("info", code=2, **variables)[0]


PROGRAM = """
import os, sys
assert "tensorflow" not in sys.modules
import tensorflow as tf
import helper_of_program
print(__name__, sys.argv[1:], helper_of_program.VALUE)
if not tf.__version__.startswith("1."):
    layers = tf.keras.layers
    x = tf.zeros([2, 5, 3])
    model = tf.keras.Sequential([layers.LSTM(4, name="first"), layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(x, x[:, 0, :1], epochs=3, verbose=0)
    layers.GRU(4, unroll=True, name="second")(x)
sys.exit(3)
"""


def test_run(tmp_path):
    """A program of several files, with its own exit code, arguments and output."""
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "helper_of_program.py").write_text("VALUE = 7")
    report = tmp_path / "report.json"
    words = ["run", "--report", report, tmp_path / "program.py", "--flag", "word"]
    printed, said = run(*words, code=3)
    assert printed == "__main__ ['--flag', 'word'] 7\n"
    found = json.loads(report.read_text())
    assert found["loaded"] and "blockcell: calls of kernels: " in said
    if not TF1:
        assert found["runs"]["BlockLSTMV2"] == found["runs"]["BlockLSTMGradV2"] == 3
        assert [name.partition("#")[0] for name in found["layers"]] == ["first"]
        assert "second: Keras's own path runs, because unroll is True." in found["said"]
        run("run", "--no-keras", *words[1:], code=3)
        assert "BlockLSTMV2" not in json.loads(report.read_text())["runs"]
    run("run", tmp_path / "absent.py", code=2)


INTERRUPTED = """import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # Tests in the background ignore it.
os.kill(os.getpid(), signal.SIGINT)"""


@pytest.mark.once
@pytest.mark.parametrize(
    "code, ends, last",
    [
        ("import nosuchmodule", 1, "ModuleNotFoundError: No module named 'nosuchmodule'"),
        ("raise EOFError('mine')", 1, "EOFError: mine"),
        ("import click; raise click.UsageError('mine')", 1, "click.exceptions.UsageError: mine"),
        ("import click; click.command()(lambda: None)(['--no'])", 2, "Error: No such option"),
        ("import sys; sys.exit('mine')", 1, "mine"),
        (INTERRUPTED, -2, "KeyboardInterrupt"),
        ("def f(:", 1, "SyntaxError: invalid syntax"),
    ],
)
def test_errors_of_a_program_are_its_own(code, ends, last, tmp_path):
    """Exit code and traceback are those that Python prints without the command."""
    program = tmp_path / "program.py"
    program.write_text(code + "\n")
    plain = subprocess.run([sys.executable, str(program)], stderr=subprocess.PIPE, text=True)
    assert plain.returncode == ends and plain.stderr.strip().splitlines()[-1].startswith(last)
    _, said = run("run", "--quiet", program, code=ends)
    assert said == plain.stderr


@pytest.mark.once
def test_run_prints_json(tmp_path):
    (tmp_path / "program.py").write_text("print('done')")
    printed, said = run("run", "--json", tmp_path / "program.py")
    assert printed == "done\n" and json.loads(said)["loaded"] is False


FULL = "/dev/full"
"""A disk without room, as Linux has it."""


def test_run_with_a_report_on_a_full_disk(tmp_path):
    """It is one line; the program's own error and exit code go first."""
    program = tmp_path / "program.py"
    program.write_text("print('done')")
    printed, said = run("run", "--report", FULL, program, code=2)
    assert printed == "done\n" and "Traceback" not in said
    assert f"blockcell: cannot write {FULL}: No space left on device" in said
    program.write_text("raise SystemExit(3)")
    assert f"cannot write {FULL}" in run("run", "--report", FULL, program, code=3)[1]
    program.write_text("open('absent')")
    said = run("run", "--report", FULL, program, code=1)[1]
    assert "No such file or directory: 'absent'" in said and f"cannot write {FULL}" in said


@pytest.mark.parametrize("option", ["--report", "--junit"])
def test_verify_with_a_report_on_a_full_disk(option):
    words = ["verify", "--quick", "--ops", "GRUBlockCell", option, FULL]
    _, said = run(*words, code=2)
    assert f"blockcell: cannot write {FULL}: No space left on device" in said
    assert "Traceback" not in said


def test_rows_on_a_full_disk():
    with pytest.raises(rows.RowsError, match=f"cannot write {FULL}: No space left on device"):
        rows.RowFile(Path(FULL), {"seconds": 1}, resume=False)


def test_bench_with_a_file_in_the_place_of_its_folder(tmp_path):
    (tmp_path / "file").write_text("")
    words = ["--ops", "GRUBlockCell", "--shapes", "2x3", "--threads", 1, "--memory", "off"]
    words += ["--seconds", 0.01, "--output", tmp_path / "file" / "x"]
    _, said = run("bench", *words, code=2, PATH=str(Path(sys.executable).parent))
    assert "blockcell: cannot write " in said and "Traceback" not in said


def test_info():
    answer = json.loads(run("info", "--json")[0])
    assert answer["loaded"] and answer["tensorflow_running"] == tf.__version__
    assert tf.__version__ in run("info")[0]


def test_info_without_a_library(tmp_path):
    _, complaint = run("info", code=2, BLOCKCELL_LIBRARY=str(tmp_path / "absent.so"))
    assert "BLOCKCELL_LIBRARY=FILE" in complaint and "Traceback" not in complaint


# verify


def test_verify(tmp_path):
    files = [tmp_path / name for name in ("all.json", "all.xml")]
    printed, _ = run("verify", "--quick", "--report", files[0], "--junit", files[1])
    found = json.loads(files[0].read_text())
    ops, dtypes = (*OPS, *cudnn_verification.OPS), ("float32", "float16", "bfloat16")
    cases = [*verification.grid(tuple(OPS), dtypes, True)]
    cases += cudnn_verification.grid(ops, dtypes, True)
    assert found["failed"] == 0 and found["cases"] == len(cases)
    assert {result["case"]["op"] for result in found["results"]} == set(ops)
    assert all(result["error"] is not None for result in found["results"])
    assert "\x1b" not in printed  # Readable without colour.
    suite = ElementTree.parse(str(files[1])).getroot()
    assert suite.get("failures") == "0" and len(suite) == len(cases)


@pytest.mark.skipif(not FAILPOINTS.exists(), reason="make test builds it")
@pytest.mark.parametrize("op", ["GRUBlockCell", "BlockLSTMGrad", "BlockGRU", "CudnnRNNV3"])
def test_verify_finds_a_wrong_kernel(op, tmp_path):
    """In the library for tests of panics, a kernel can be made to return zeros."""
    words = ["verify", "--quick", "--dtypes", "float32", "--library", FAILPOINTS]
    words += ["--ops", f"{op},GRUBlockCellGrad", "--junit", tmp_path / "all.xml"]
    run(*words)
    printed, complaint = run(*words, "--quiet", code=1, FAILPOINTS=f"wrong-{op}=return")
    assert printed == "" and op in complaint and "GRUBlockCellGrad" not in complaint
    suite = ElementTree.parse(str(tmp_path / "all.xml")).getroot()
    assert {case.get("classname") for case in suite if len(case)} == {op}


def test_verify_of_a_graph():
    found = json.loads(run("verify", "--graph", GRAPH, "--json")[0])
    assert found["failed"] == 0
    assert {result["case"]["op"] for result in found["results"]} == {
        "GRUBlockCell",
        "GRUBlockCellGrad",
    }
    sizes = {"batch": 64, "input_size": 128, "cell_size": 256}
    assert found["results"][0]["case"]["sizes"] == sizes


def test_verify_of_an_op_that_is_not():
    assert "there are GRUBlockCell" in run("verify", "--ops", "GRU", code=2)[1]


def test_an_error_above_the_tolerance_fails():
    case = verification.Case(
        "GRUBlockCell", "float32", {}, dict(batch=3, input_size=5, cell_size=7)
    )
    assert verification.check(case, 0, None).problem is None
    result = verification.check(case, 0, None)._replace(problem="wrong")
    (line,) = verification.summary([result])
    assert line.failed == 1
    assert "failure" in verification.as_junit([result])


# inspect


def graph_def(batch):
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [batch, 3])
        h = tf.compat.v1.placeholder(tf.float32, [batch, 5])
        w_ru, w_c = tf.zeros([8, 10]), tf.zeros([8, 5])
        for device in ("", "/device:GPU:0"):
            with tf.device(device):
                tf.raw_ops.GRUBlockCell(
                    x=x, h_prev=h, w_ru=w_ru, w_c=w_c, b_ru=tf.zeros([10]), b_c=tf.zeros([5])
                )
    return graph.as_graph_def()


@pytest.mark.once
def test_inspect_requires(tmp_path):
    """For CI: 1 where a node would not run on the kernels, or nothing would."""
    tf.io.write_graph(graph_def(2), str(tmp_path), "graph.pb", as_text=False)
    words = ["--no-measure", "--require"]
    printed, _ = run("inspect", tmp_path / "graph.pb", *words, code=1)
    assert "GRUBlockCell_1 would not run on the kernels: the graph places it on" in printed
    assert "GRUBlockCell would not run" not in printed
    printed, _ = run("inspect", GRAPH, *words)
    assert "Becomes BlockcellMatMulAddN of 1: " in printed
    run("inspect", PLAIN_GRAPHS / "absent.pb", *words, code=2)
    with tf.Graph().as_default() as graph:
        tf.zeros([2])
    tf.io.write_graph(graph, str(tmp_path), "empty.pb", as_text=False)
    printed, _ = run("inspect", tmp_path / "empty.pb", *words, code=1)
    assert "empty.pb would run on the kernels" in printed


@pytest.mark.once
def test_inspect_puts_equal_nodes_together(tmp_path):
    graphs = graph_def(2)
    again = graphs.node.add()
    again.CopyFrom(next(node for node in graphs.node if node.name == "GRUBlockCell"))
    again.name = "third"
    tf.io.write_graph(graphs, str(tmp_path), "graph.pb", as_text=False)
    printed, _ = run("inspect", tmp_path / "graph.pb", "--no-measure")
    assert "GRUBlockCell and 1 more " in printed and "third" not in printed
    found = json.loads(run("inspect", tmp_path / "graph.pb", "--no-measure", "--json")[0])
    assert [node["name"] for node in found["nodes"]] == ["GRUBlockCell", "GRUBlockCell_1", "third"]


@pytest.mark.parametrize("text", [False, True])
def test_nodes_of_a_graph(text, tmp_path):
    tf.io.write_graph(graph_def(None), str(tmp_path), "graph.pb", as_text=text)
    first, second = graph_nodes.read(tmp_path / "graph.pb")
    assert graph_nodes.sizes_of(first) == {"batch": None, "input_size": 3, "cell_size": 5}
    assert graph_nodes.why_not(first) is None
    assert "other than a CPU" in graph_nodes.why_not(second)
    assert graph_nodes.case_of(first, 7, 1).shape == "7x3x5"


@pytest.mark.skipif(TF1, reason="a SavedModel with functions is TensorFlow 2's")
def test_nodes_of_a_saved_model(tmp_path):
    class Model(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([4, 2, 3], tf.float32)])
        def __call__(self, x):
            zeros = [tf.zeros([2, 5])] * 2
            return tf.raw_ops.BlockLSTMV2(
                seq_len_max=tf.constant(4, tf.int64),
                x=x,
                cs_prev=zeros[0],
                h_prev=zeros[1],
                w=tf.zeros([8, 20]),
                **dict.fromkeys(("wci", "wcf", "wco"), tf.zeros([5])),
                b=tf.zeros([20]),
                cell_clip=0.0,
            ).h

    tf.saved_model.save(Model(), str(tmp_path))
    node = next(node for node in graph_nodes.read(tmp_path) if node.op == "BlockLSTMV2")
    assert node.function
    assert graph_nodes.case_of(node, 1, 1).shape == "4x2x3x5"


def test_no_graph(tmp_path):
    (tmp_path / "graph.pb").write_bytes(b"\xff\xfe no graph")
    with pytest.raises(graph_nodes.GraphFileError, match="is not a GraphDef"):
        graph_nodes.read(tmp_path / "graph.pb")
    for command in (["inspect"], ["verify", "--graph"], ["bench", "--graph"]):
        _, complaint = run(*command, tmp_path / "absent.pb", code=2)
        assert "there is no file" in complaint and len(complaint.strip().splitlines()) == 1


def test_control_c(monkeypatch, capsys):
    import click

    from blockcell import cli

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(click.Command, "invoke", interrupted)
    with pytest.raises(SystemExit) as end:
        cli.group(["info"], prog_name="blockcell")
    assert end.value.code == 130
    assert capsys.readouterr().err == "blockcell: interrupted\n"


def test_inspect():
    found = json.loads(run("inspect", GRAPH, "--json", "--no-measure")[0])
    assert [node["op"] for node in found["nodes"]] == ["GRUBlockCell", "GRUBlockCellGrad"]
    assert {node["runs_on"] for node in found["nodes"]} == {"blockcell"}
    becomes = collections.Counter(place["becomes"] for place in found["graph_passes"])
    assert becomes == {"BlockcellMatMulAddN": 2, "BlockcellBiasAddGradAddN": 2}


@pytest.mark.once
def test_inspect_of_a_target_that_is_not():
    printed, _ = run("inspect", GRAPH, "--no-measure", "--target", "no/such/node", code=2)
    assert not printed


@pytest.mark.once
def test_inspect_knows_plain_cells(tmp_path):
    for name, becomes in (("gru", "BlockcellGRULayer"), ("residual", "BlockcellGRULayer")):
        packed = PLAIN_GRAPHS / (name + ".pb.gz")
        (tmp_path / "plain.pb").write_bytes(gzip.decompress(packed.read_bytes()))
        found = json.loads(run("inspect", tmp_path / "plain.pb", "--json")[0])
        assert not found["nodes"]
        assert found["graph_passes"][0]["becomes"] == becomes


@pytest.mark.once
@pytest.mark.parametrize("name, becomes", [("lstm", "CudnnRNN"), ("masked_outputs", None)])
def test_inspect_knows_layers_of_keras_2(tmp_path, name, becomes):
    with tarfile.open(str(KERAS_2 / ("2.4-" + name + ".tar.xz"))) as archive:
        archive.extractall(str(tmp_path))
    found = json.loads(run("inspect", tmp_path / "model", "--json")[0])
    places = found["graph_passes"]
    assert len(places) == (2 if name == "lstm" else 1)
    assert {place["becomes"] for place in places} == {becomes}
    assert becomes or "after a row's end" in places[0]["reason"]


@pytest.mark.once
def test_inspect_measures(tmp_path):
    tf.io.write_graph(graph_def(2), str(tmp_path), "graph.pb", as_text=False)
    found = json.loads(run("inspect", tmp_path / "graph.pb", "--json", "--seconds", "0.01")[0])
    first = found["nodes"][0]
    assert first["stock_seconds"] > 0 and first["ours_seconds"] > 0


# bench


def test_rows_are_kept_and_resumed(tmp_path):
    path = tmp_path / "rows.jsonl"
    first = rows.RowFile(path, {"seconds": 1}, resume=False)
    first.add(["a", 1], {"ours": [1.0]})
    with path.open("a") as file:
        file.write('{"key": ["b"')  # As a run that was killed leaves it.
    again = rows.RowFile(path, {"seconds": 1}, resume=True)
    assert again.get(("a", 1)) == {"ours": [1.0]} and again.get(["b", 1]) is None
    again.add(["b", 1], {"ours": [2.0]})
    assert rows.RowFile(path, {"seconds": 1}, resume=True).get(["b", 1]) == {"ours": [2.0]}
    with pytest.raises(rows.ResumeError, match="seconds differ"):
        rows.RowFile(path, {"seconds": 2}, resume=True)


def test_a_ratio_lies_within_its_quartiles():
    random = np.random.RandomState(1)
    for _ in range(50):
        times = np.exp(random.standard_normal([2, random.randint(1, 9)]))
        ratio, (low, high) = report.ratio_quartiles(*times)
        assert low <= ratio <= high


def test_page_is_self_contained(tmp_path):
    picture = tmp_path / "plot.png"
    picture.write_bytes(b"\x89PNG")
    parts = [page.image(picture), page.table(["a<b"], [["1"]], 0), page.paragraph("`x & y`")]
    page.write(tmp_path / "page.html", "Title", parts)
    text = (tmp_path / "page.html").read_text()
    assert (
        "data:image/png;base64," in text and "a&lt;b" in text and "<code>x &amp; y</code>" in text
    )
    assert "http" not in text


class Measured(Exception):
    """Thrown instead of measuring: what the command line asks for."""


@pytest.fixture
def bench(monkeypatch):
    """Runs `blockcell bench` up to where it would measure; returns click's result."""
    from click.testing import CliRunner

    from blockcell.cli import bench

    def measure(wanted, console):
        raise Measured(wanted)

    monkeypatch.setattr(measuring, "measure", measure)
    return lambda *words: CliRunner().invoke(bench.command, words)


def test_options_of_bench(bench):
    lists = ["--ops", "BlockLSTM+Grad,GRUBlockCell", "--shapes", "20x200,3x5x7"]
    lists += ["--sequences", "all", "--threads", "2,1,2", "--dtypes", "half", "--peephole", "both"]
    (wanted,) = bench(*lists).exception.args
    assert wanted.ops == ["BlockLSTM+Grad", "GRUBlockCell"]
    assert wanted.shapes == [(None, 20, 200, 200), (None, 3, 5, 7)] and wanted.sequences == ["all"]
    assert wanted.threads == [1, 2] and wanted.peephole == [False, True]
    assert wanted.dtypes == ["half"] and wanted.memory == (35, 20, 1500, 1500)
    (wanted,) = bench("--graph", "FILE", "--batch", "7").exception.args
    assert wanted.dtypes == ["float32"] and wanted.memory is None and wanted.batch == 7
    assert bench("--memory", "off").exception.args[0].memory is False


@pytest.mark.parametrize(
    "words, complaint",
    [
        (["--shapes", "20x200,20"], "'20' is no shape such as 20x200"),
        (["--sequences", "axb"], "'axb' is no shape such as 35x20x200"),
        (["--ops", "GRUBlockCell,GRU"], "GRU"),
        (["--threads", "1,0"], "0 is not in the range"),
        (["--seconds", "0"], "0.0 is not in the range"),
        (["--linear", "--random", "3"], "cannot be combined"),
        (["--graph", "FILE", "--sequences", "3x2x1"], "cannot be combined with shapes"),
    ],
)
def test_wrong_options_of_bench(bench, words, complaint):
    result = bench(*words)
    assert result.exit_code == 2 and complaint in result.output


def test_bench_of_a_graph(tmp_path):
    words = ["--graph", GRAPH, "--threads", 1, "--seconds", 0.01, "--output", tmp_path]
    run("bench", *words, "--ops", "GRUBlockCell", PATH=str(Path(sys.executable).parent))
    (results,) = tmp_path.glob("*-graph.json")
    (row,) = json.loads(results.read_text())["rows"]
    assert (row["op"], row["batch"], row["cell_size"]) == ("GRUBlockCell", 64, 256)


@pytest.mark.once
def test_bench(tmp_path):
    """Without cargo there is no floor; --resume takes the rows of the run before."""
    words = [
        "bench",
        "--ops",
        "GRUBlockCell",
        "--shapes",
        "2x3,3x2",
        "--threads",
        "1",
        "--memory",
        "off",
    ]
    words += ["--dtypes", "float32", "--seconds", "0.01", "--output", tmp_path]
    path = str(Path(sys.executable).parent)
    printed, _ = run(*words, PATH=path)
    assert "GRUBlockCell" in printed
    (kept,) = tmp_path.glob("*.rows.jsonl")
    content = kept.read_text().splitlines(keepends=True)
    assert len(content) == 3
    (results,) = tmp_path.glob("*.json")
    row, _ = json.loads(results.read_text())["rows"]
    assert row["quartiles"][0] <= row["ratio"] <= row["quartiles"][1]
    assert "<table>" in next(tmp_path.glob("*.html")).read_text()
    kept.write_text("".join(content[:2]) + content[2][:9])  # As a run that was killed leaves it.
    run(*words, "--resume", PATH=path)
    again = kept.read_text().splitlines(keepends=True)
    assert again[:2] == content[:2] and len(again) == 3 and again[2] != content[2]
    assert "--resume" in run(*words, "--resume", "--seed", "2", code=2, PATH=path)[1]


@pytest.mark.once
def test_memory_of_packed_weights():
    shape = shapes.sequence_shape("12x4x96x128")
    found = memory.measure_packed(shape, 1, str(blockcell.find_library()))
    assert found.weights == 4 * (96 + 128) * 4 * 128
    assert found.weights <= found.float32 < 2.2 * found.weights
    assert 0.2 * found.weights < found.int8 <= 0.3 * found.weights
    about = {"versions": {}, "isa": "", "machine": {}, "date": "", "command": "", "commit": ""}
    all_found = measuring.Found("", "", about, {}, [], [], [], [found])
    (title, columns, [cells], texts) = list(report._tables(all_found))[-1]
    assert title == "Packed constant weights, MiB" and len(cells) == len(columns) > texts
    assert report.as_json(all_found)["packed_weights"] == [found._asdict()]


def test_options_of_clients(bench, monkeypatch):
    def measure(wanted, console):
        raise Measured(wanted)

    monkeypatch.setattr(client_rows, "measure", measure)
    (wanted,) = bench("--clients", "4,1,4", "--shapes", "2x3").exception.args
    assert wanted.clients == [1, 4] and wanted.ops == ["BlockLSTM"] and wanted.seconds == 4.0
    assert wanted.dtypes == ["float32"] and wanted.shapes == [(None, 2, 3, 3)]
    (wanted,) = bench("--clients", "2", "--ops", "all", "--sequences", "all").exception.args
    assert "LSTMBlockCell" in wanted.ops and not any("Grad" in op for op in wanted.ops)
    result = bench("--clients", "2", "--ops", "BlockLSTM+Grad")
    assert result.exit_code == 2 and "--clients supports GRUBlockCell, " in result.output


# JSON


@pytest.mark.once
def test_names_in_json_are_documented(tmp_path):
    graph, quick = GRAPH, ["--quick", "--ops", "GRUBlockCell"]
    program = tmp_path / "program.py"
    program.write_text("")
    commands = [["info"], ["verify", *quick], ["inspect", graph, "--no-measure"], ["run", program]]
    for command in commands:
        printed, said = run(command[0], "--json", *command[1:])
        assert set(json.loads(said if command[0] == "run" else printed)) == documented(command[0])
    about = {"versions": {}, "isa": "", "ops": [], "date": "", "command": "", "machine": {}}
    about["commit"] = ""
    found = measuring.Found("", "", about, {}, [], [], [])
    assert set(report.as_json(found)) == documented("bench")
