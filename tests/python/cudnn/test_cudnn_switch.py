"""The variable `BLOCKCELL_CUDNN`. No test has a GPU: what follows from one is tested in Rust."""

import os
import subprocess
import sys

import pytest

from helpers import isolated


def run(name, value):
    outcome = isolated.run("cudnn_switch", [name], {"BLOCKCELL_CUDNN": value})
    return isolated.value(outcome[name])


@pytest.mark.parametrize("value", [None, "", "auto", "1"])
def test_kernels_are_there_without_a_gpu(value):
    assert run("on", value) == "on"


def test_switched_off_ops_answer_as_stock_does():
    switch, complaint = run("off", "0")
    assert switch == "off"
    assert complaint == ["InvalidArgumentError", True]  # It is about the missing kernel.


@pytest.mark.parametrize("value, said", [("no", True), ("auto", False), ("0", False)])
def test_a_wrong_value_is_said(value, said):
    code = "import blockcell; blockcell.load()"
    environment = dict(os.environ, BLOCKCELL_CUDNN=value, TF_CPP_MIN_LOG_LEVEL="3")
    environment["PYTHONPATH"] = os.pathsep.join(map(str, isolated.PATHS))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        check=True,
    )
    complaint = "blockcell: BLOCKCELL_CUDNN=no is ignored. The values are auto"
    assert (complaint in done.stderr) == said, done.stderr
