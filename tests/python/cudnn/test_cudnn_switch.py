"""The variable `BLOCKCELL_CUDNN`.

No test has a GPU. A variant of the library, which `make test` builds, answers as if there were one.
"""

import os
import subprocess
import sys

import pytest

import blockcell
from helpers import isolated

# find_library gives build/tf-<minor>/libblockcell.so.
FOLDER = blockcell.find_library().parent
LIBRARY = FOLDER.parent / "failpoints" / FOLDER.name / "libblockcell.so"


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


@pytest.mark.skipif(not LIBRARY.is_file(), reason="make test builds build/failpoints")
@pytest.mark.parametrize(
    "value, gpu, want",
    [
        *((value, "return", "off") for value in (None, "", "auto")),
        *((value, "off", "on") for value in (None, "", "auto")),
        # The variable has said it: nobody may ask.
        *(("1", "panic", "on"), ("0", "panic", "off")),
    ],
)
def test_a_gpu_counts_only_where_the_variable_leaves_it_open(value, gpu, want):
    environment = {
        "BLOCKCELL_CUDNN": value,
        "BLOCKCELL_LIBRARY": str(LIBRARY),
        "FAILPOINTS": "gpu=" + gpu,
    }
    outcome = isolated.run("cudnn_switch", ["switch"], environment)
    assert isolated.value(outcome["switch"]) == want


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
    complaint = "blockcell: BLOCKCELL_CUDNN=no is ignored. Valid values: auto"
    assert (complaint in done.stderr) == said, done.stderr
