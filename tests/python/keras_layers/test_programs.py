"""Keras's own tests on the kernels, and the example."""

import json
import re

import pytest
import tensorflow as tf

import blockcell
from helpers.programs import run

if tf.__version__.startswith("1."):
    pytest.skip("blockcell.keras is for TensorFlow 2", allow_module_level=True)


@pytest.mark.skipif(
    not hasattr(tf.keras.layers.LSTM, "inner_loop"), reason="Keras 2 brings no tests"
)
def test_kerass_own_tests_pass():
    code, printed = run("scripts/keras_own_tests.py", "-q")
    assert code == 0, printed[-4000:]
    assert int(re.search(r"^(\d+) passed", printed, re.MULTILINE).group(1)) >= 20, printed
    assert int(re.search(r"^(\d+) calls ran on the kernels", printed, re.M).group(1)) >= 50


def test_example(tmp_path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("rich")
    small = ["--units", "9", "--time", "12", "--pieces", "200", "--epochs", "3"]
    library = ("--library", blockcell.find_library())
    code, printed = run("examples/keras_classifier/run.py", *library, *small, "--output", tmp_path)
    assert code == 0, printed[-4000:]
    (file,) = tmp_path.glob("tf-*.json")
    results = json.loads(file.read_text(encoding="utf-8"))
    assert [result["cell"] for result in results] == ["LSTM", "GRU"]
    for result in results:
        stock, ours = result["stock"], result["ours"]
        assert ours["losses"] == pytest.approx(stock["losses"], rel=1e-4)
        assert ours["losses"][-1] < ours["losses"][0]
        assert ours["accuracy"] == stock["accuracy"]
        assert len(ours["seconds"]) == 2
    assert "| standard library | LSTM | 12x32x9 |" in file.with_suffix(".md").read_text()
    assert file.with_suffix(".svg").stat().st_size > 0
