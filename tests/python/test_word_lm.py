"""Training of the word model's graphs: the same losses as on stock kernels."""

import gzip
import json

import pytest
import tensorflow as tf

import blockcell
from helpers import programs

pytest.importorskip("matplotlib")
pytest.importorskip("rich")

EXAMPLE = programs.ROOT / "examples" / "word_lm"

in_tensorflow_2 = pytest.mark.skipif(
    not hasattr(getattr(tf.nn, "experimental", None), "stateless_dropout"),
    reason="the code is for TensorFlow 2.8 and later",
)
made_by_1_15 = pytest.mark.skipif(
    not tf.__version__.startswith("1.15."), reason="only TensorFlow 1.15 makes the graphs"
)


def run(program, *arguments, take_over=None):
    """Runs a program of the example; returns its exit code and what it printed."""
    environment = {} if take_over is None else {"BLOCKCELL_OVERRIDE": take_over}
    return programs.run(EXAMPLE / program, *arguments, environment=environment)


def train(output, *arguments, take_over=None, runner="run.py"):
    """Runs a runner for a few steps; returns its exit code and what it printed."""
    few = ("--rounds", 3, "--steps", 4, "--output", output)
    library = ("--library", blockcell.find_library())
    return run(runner, *library, *few, *arguments, take_over=take_over)


def results(output, prefix="tf"):
    """Returns what the runner has written."""
    (file,) = output.glob(f"{prefix}*.json")
    assert file.with_suffix(".svg").stat().st_size > 0
    return json.loads(file.read_text(encoding="utf-8"))


def largest_difference(result):
    pairs = zip(result["stock"]["losses"], result["ours"]["losses"])
    return max(abs(ours - stock) / stock for stock, ours in pairs)


def check(result):
    """Checks that a model has learnt, the same with both kernels."""
    losses = result["ours"]["losses"]
    assert len(losses) == (3 + 1) * 4
    assert losses[-1] < 0.95 * losses[0]
    assert largest_difference(result) <= 1e-4
    assert len(result["ours"]["rounds"]) == len(result["stock"]["rounds"]) == 3


def test_same_losses_with_each_kind_of_cell(tmp_path):
    code, printed = train(tmp_path, "--sizes", "tiny")
    assert code == 0, printed
    found = results(tmp_path)
    assert len(found) == 5, printed
    for result in found:
        check(result)
        assert result["stock"]["ops"]["MatMul"][0] > 0


@in_tensorflow_2
def test_same_losses_in_code_for_tensorflow_2(tmp_path):
    code, printed = train(tmp_path, "--sizes", "tiny", runner="run_tf2.py")
    assert code == 0, printed
    found = results(tmp_path)
    assert [result["graph"] for result in found] == [
        "LSTMBlockCell, tiny",
        "LSTMBlockFusedCell against LSTMBlockCell, tiny",
        "GRUBlockCellV2, tiny",
        "GRUBlockFusedCell against GRUBlockCellV2, tiny",
    ]
    for result in found:
        check(result)
    assert found[0]["stock"]["losses"] != found[2]["stock"]["losses"]
    (file,) = tmp_path.glob("tf2-*.json")
    code, printed = run("report.py", file, "--plot", tmp_path / "plot.svg")
    assert code == 0 and printed.count("| LSTMBlockFusedCell against") == 1, printed


@in_tensorflow_2
def test_losses_in_bfloat16_are_close(tmp_path):
    arguments = ("--sizes", "tiny", "--cells", "lstm_block_fused_cell")
    code, printed = train(tmp_path, *arguments, runner="run_bfloat16.py")
    assert code == 0, printed
    found = results(tmp_path, "bfloat16")
    title = "LSTMBlockFusedCell, tiny"
    ways = ("stock in bfloat16", "blockcell", "blockcell in bfloat16")
    assert [result["graph"] for result in found] == [f"{title}: {way}" for way in ways]
    check(found[1])
    # Processors without instructions for bfloat16 may leave all of it in float32.
    assert all(largest_difference(result) <= 1e-2 for result in found)


@in_tensorflow_2
def test_the_runner_of_tensorflow_2_notices_that_the_library_is_off(tmp_path):
    arguments = ("--sizes", "tiny", "--cells", "gru")
    code, printed = train(tmp_path, *arguments, take_over="0", runner="run_tf2.py")
    assert code == 1, printed
    assert "has not taken over GRUBlockCellGrad" in printed


def test_the_runner_notices_that_the_library_is_off(tmp_path):
    code, printed = train(tmp_path, "--sizes", "tiny", "--cells", "lstm_block_cell", take_over="0")
    assert code == 1, printed
    assert "has not taken over LSTMBlockCellGrad" in printed


@made_by_1_15
def test_graphs_of_any_size_are_made_and_trained(tmp_path):
    odd = ("--units", 17, "--time", 3, "--batch", 4, "--vocabulary", 90, "--keep", 0.8)
    code, printed = run(
        "make_graphs.py", "--sizes", "tiny", "--name", "odd", *odd, "--output", tmp_path
    )
    assert code == 0, printed
    graphs = sorted(tmp_path.glob("*-odd.meta.gz"))
    assert len(graphs) == 5, printed
    code, printed = train(tmp_path, "--graphs", *graphs)
    assert code == 0, printed
    for result in results(tmp_path):
        check(result)
        assert result["words"] == 3 * 4


@made_by_1_15
def test_committed_graphs_are_what_the_program_makes(tmp_path):
    code, printed = run("make_graphs.py", "--output", tmp_path)
    assert code == 0, printed
    committed = sorted((EXAMPLE / "graphs").glob("*-tiny.meta.gz"))
    committed += sorted((EXAMPLE / "graphs").glob("*-small.meta.gz"))
    committed += sorted((EXAMPLE / "graphs").glob("*-medium.meta.gz"))
    assert len(committed) == 15
    for path in committed:
        with gzip.open(str(path)) as old, gzip.open(str(tmp_path / path.name)) as new:
            assert old.read() == new.read(), path.name
