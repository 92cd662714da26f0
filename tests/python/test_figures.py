"""The page of figures: what benchmarks write is read, and stands in its tables."""

import json
import subprocess
import sys

import pytest

from pages import ROOT

sys.path.insert(0, str(ROOT))

from bench.comparison import row_of  # noqa: E402
from bench.cudnn.nets import Net as CudnnNet  # noqa: E402
from bench.figures import readme, rows  # noqa: E402
from bench.figures.__main__ import machine as page_of_machine  # noqa: E402
from bench.figures.__main__ import page  # noqa: E402
from bench.figures.sections import SECTIONS  # noqa: E402
from bench.inference.nets import Net as InferenceNet  # noqa: E402
from bench.peers import clients  # noqa: E402
from bench.peers.__main__ import parse_arguments  # noqa: E402
from bench.predict.nets import Net as PredictNet  # noqa: E402

from blockcell_tools.bench.turns import Turns  # noqa: E402

ROUNDS = {"ours": [1e-3, 2e-3, 1e-3], "tensorflow": [2e-3, 4e-3, 3e-3], "layer": [1e-3] * 3}


def inference(threads, batch=1):
    turns = Turns(dict(ROUNDS), [(0.0, 1.0)] * 6, {"tensorflow": 0.0, "layer": 0.0})
    net = InferenceNet("lstm", "plain", 50, batch, 64, 128)
    found = [row_of(net, threads, rival, turns) for rival in ("layer", "tensorflow")]
    return {"versions": {"tensorflow": "2.21.0"}, "rows": found}


def test_rivals_of_inference_are_tensorflow_alone():
    (row,) = rows.of_turns(inference(1))
    assert (row.group, row.rival, row.shape) == ("TensorFlow 2.21.0", "TensorFlow", "50x1x64x128")
    assert (row.ours, row.theirs, row.ratio) == (1e-3, 3e-3, 2.0)
    assert row.quartiles == (2.0, 2.5)


def test_networks_for_cudnn():
    turns = Turns({"ours": [1.0], "torch": [3.0]}, [(0.0, 1.0)] * 2, {"torch": 0.0})
    net = CudnnNet("gru", "forward", 2, 1, 20, 4, 8, 16)
    (row,) = rows.of_turns({"versions": {}, "rows": [row_of(net, 2, "torch", turns)]})
    assert row[:5] == ("forward", "gru 2x1", "20x4x8x16", "PyTorch", 2)
    assert row.ratio == 3.0


def test_predict_of_keras():
    turns = Turns({"ours": [1.0], "keras": [3.0]}, [(0.0, 1.0)] * 2, {"keras": 0.0})
    net = PredictNet("GRU", "predict_on_batch", 20, 4, 8, 16)
    (row,) = rows.of_turns({"versions": {}, "rows": [row_of(net, 2, "keras", turns)]})
    assert row[:5] == ("predict_on_batch", "GRU", "20x4x8x16", "Keras", 2)
    assert row.ratio == 3.0


def test_word_models_and_classifiers():
    side = {"rounds": [2.0, 4.0], "seconds": [2.0, 4.0]}
    slow = {name: [2 * value for value in values] for name, values in side.items()}
    common = {"tensorflow": "1.15.5", "threads": 1, "stock": slow, "ours": side}
    word = dict(common, graph="LSTMBlockCell, 200 units")
    classifier = dict(common, cell="GRU", data="digits", time=8, batch=32, units=256)
    first, second = rows.of_training([word, classifier])
    assert (first.case, first.rival, first.ratio) == ("LSTMBlockCell, 200 units", "TensorFlow", 2.0)
    assert (second.case, second.shape, second.rival) == ("GRU, digits", "8x32x256", "Keras")


def test_peers_and_ops():
    sizes = {"time": 50, "batch": 1, "input_size": 64, "cell_size": 64, "threads": 2}
    peer = dict(sizes, kind="LSTM", work="inference", seconds={"ours": 1.0, "onnxruntime": 2.0})
    peer.update(ratios={"onnxruntime": 2.0}, quartiles={"onnxruntime": [1.0, 3.0]}, disturbed=True)
    (row,) = rows.of_peers({"rows": [peer]})
    assert row[:5] == ("LSTM, inference", "LSTM", "50x1x64", "ONNX Runtime", 2)
    assert row.quartiles == (1.0, 3.0) and row.disturbed
    op = dict(sizes, time=None, cell_size=32, op="GRUBlockCell", dtype="float32", stock=1.0)
    op.update(use_peephole=True, ours=2.0, ratio=0.5, quartiles=[0.4, 0.6], disturbed=False)
    (row,) = rows.of_ops({"rows": [op]})
    assert row[:3] == ("GRUBlockCell", "float32, peephole", "1x64x32")


def test_page_has_threads_side_by_side_and_the_worst_row_beside_the_mean():
    section = next(section for section in SECTIONS if section.title == "Inference")
    found = {one: [] for one in SECTIONS}
    found[section] = [row for count in (1, 2) for row in rows.of_turns(inference(count))]
    worst = [row._replace(case="LSTM, lengths", ratio=0.5) for row in found[section]]
    text = page({**found, section: [*found[section], *worst]}, [])
    assert "| LSTM, plain | 50x1x64x128 | 3 | 1 | 2.00 (2.00 to 2.50) | 3 | 1 | 2.00" in text
    means = "| Inference | TensorFlow 2.21.0 | TensorFlow | 1 | 2 | 1.00 | 0.50 | LSTM, lengths"
    assert means in text
    assert "Not measured yet: `make bench-figures-ops`." in text


def test_overview_keeps_small_batches_and_rows_of_one_number_of_threads_apart():
    section = next(section for section in SECTIONS if section.title == "Inference")
    found = {one: [] for one in SECTIONS}
    for count, batch, ratio in [(1, 1, 1.0), (2, 1, 2.0), (2, 8, 50.0), (1, 32, 3.0), (2, 32, 4.0)]:
        (row,) = rows.of_turns(inference(count, batch))
        found[section].append(row._replace(ratio=ratio))
    text = page(found, []).partition("## Training steps")[0]
    few, more = "TensorFlow 2.21.0, batches of 1 to 8", "TensorFlow 2.21.0, larger batches"
    for group, threads, mean in [(few, 1, 1), (few, 2, 2), (more, 1, 3), (more, 2, 4)]:
        start = f"| Inference | {group} | TensorFlow | {threads} | 1 | {mean:.2f} | {mean:.2f} |"
        assert start in text, text


def test_half_memory_and_clients():
    sizes = {"time": 50, "batch": 1, "input_size": 64, "cell_size": 64, "threads": 2}
    op = dict(sizes, op="BlockLSTM", dtype="half", stock=1.0, use_peephole=False, ours=2.0)
    op.update(ratio=0.5, quartiles=[0.4, 0.6], disturbed=False)
    assert next(rows.of_ops({"rows": [op]})).group == "BlockLSTM, half"
    peak = {"shape": "35x20x1500", "threads": 1, "allocated": None}
    peaks = [dict(peak, side="stock", peak=3 << 20), dict(peak, side="ours", peak=1 << 20)]
    found = {one: [] for one in SECTIONS}
    memory = next(one for one in SECTIONS if one.unit == "MiB")
    found[memory] = list(rows.of_memory({"memory": peaks}))
    assert "| resident | 35x20x1500 | 3 | 1 | 3.00 |" in page(found, [])
    service = {"calls": 9, "p50": 0.001, "p99": 0.004}
    fast, slow = dict(service, calls_per_second=200.0), dict(service, calls_per_second=100.0)
    client = dict(sizes, kind="LSTM", clients=4, services={"ours": fast, "openvino": slow})
    client.update(ratios={"openvino": 2.0}, quartiles={"openvino": [1.0, 3.0]}, disturbed=True)
    rate, late = rows.of_clients({"rows": [client]})
    assert rate[:5] == ("LSTM, 1 / calls per second", "4 clients", "50x1x64", "OpenVINO", 2)
    assert (rate.theirs, rate.ours, rate.ratio) == (0.01, 0.005, 2.0)
    assert (late.group, late.ratio, late.quartiles) == ("LSTM, p99", 1.0, None)
    assert rate.disturbed and late.disturbed


def test_clients_of_peers():
    arguments = parse_arguments(["--clients", "1", "4", "--layers", "GRU", "--inter-op", "-1"])
    assert arguments.clients == [1, 4] and arguments.inter_op == -1
    for kind, sides in (("LSTM", ("ours", "stock")), ("GRU", ("ours",))):
        net = clients.Calls(kind, 5, 2, 3, 3, clients=4)
        assert net.sides == (*sides, "onnxruntime", "openvino")
        arrays = net.arrays(1)
        assert (
            arrays["clients"].shape == (4, 5, 2, 3) and len(set(map(bytes, arrays["clients"]))) == 4
        )
        assert set(net.values(arrays)) == {tensor.name for tensor in net.op.inputs}
        assert net._replace(is_nothing=True).op is None


def test_page_names_machine_and_commit():
    machine = {"cpu": "a", "is_virtual": True, "cores": 2, "real_cores": 1.2, "system": "Linux x"}
    about = {"machine": machine, "versions": {}, "isa": "avx2", "date": "", "command": "x"}
    (text,) = page_of_machine([dict(about, commit="abc1234")])
    start = "a, a virtual machine, 2 cores with 1.2 times the multiply-adds of one, Linux x, "
    assert start + "instruction set avx2. ; commit abc1234." in text
    limits = [{"threads": n, "flops_per_second": rate} for n, rate in ((1, 100.0), (2, 190.0))]
    (text,) = page_of_machine([about, dict(about, limits=limits)])
    assert "2 cores with 1.9 times the multiply-adds of one" in text


def test_page_names_the_commands():
    about = {"machine": {"cpu": "a", "cores": 2, "system": "b"}, "versions": {}, "isa": "avx2"}
    about.update(date="", command="python -m bench.inference --seconds 0.2")
    text = page({section: [] for section in SECTIONS}, [about])
    assert "```sh\npython -m bench.inference --seconds 0.2\n```" in text


def test_front_page_is_that_of_the_page_of_figures():
    """Its table and its chart are what `make figures` writes from the page."""
    figures = (ROOT / "docs" / "figures.md").read_text(encoding="utf-8")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme.updated(text, figures) == text
    assert readme.chart(figures) == (ROOT / "docs" / "plots" / "overview.svg").read_text()
    assert len(readme.TABLE) <= 8 and len(readme.overview(figures)) > len(readme.TABLE)


def test_table_of_the_front_page():
    section = next(section for section in SECTIONS if section.title == "Inference")
    found = {one: [] for one in SECTIONS}
    before = "a\n<!-- figures: begin -->\nold\n<!-- figures: end -->\nb\n"
    assert readme.updated(before, page(found, [])) == before
    found[section] = [
        row
        for count in (1, 2)
        for batch in (1, 32)
        for row in rows.of_turns(inference(count, batch))
    ]
    about = {"machine": {"cpu": "a processor", "cores": 2, "system": "Linux"}, "isa": "avx2"}
    about.update(versions={}, date="2026-11-28 02:51 UTC", command="x")
    after = readme.updated(before, page(found, [about]))
    assert "Measured on 2026-11-28 on a processor, 2 cores (avx2)." in after
    assert after.startswith("a\n") and after.endswith("\nb\n") and "old" not in after
    row = "| Frozen graphs, small batches | TensorFlow | 2.00 (2.00) | 2.00 (2.00) |"
    assert row in after
    assert readme.updated(after, page(found, [about])) == after


def test_files_of_two_machines_are_refused(tmp_path):
    (tmp_path / "inference").mkdir()
    for name in ("a", "b"):
        about = {"machine": {"cpu": name}, "isa": "avx2", "date": ""}
        content = json.dumps(dict(inference(1), **about))
        (tmp_path / "inference" / f"inference-{name}.json").write_text(content, encoding="utf-8")
    command = [sys.executable, "-m", "bench.figures", "--input", str(tmp_path)]
    command += ["--output", str(tmp_path / "figures.md")]
    done = subprocess.run(command, cwd=str(ROOT), stderr=subprocess.PIPE)
    assert done.returncode == 1 and b"several machines: a, b" in done.stderr


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.target)
def test_targets_exist(section):
    assert f"\n{section.target}:" in (ROOT / "bench" / "figures.mk").read_text(encoding="utf-8")
