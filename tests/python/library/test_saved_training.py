"""Training functions and graphs, made with the library, run in a process that does not have it."""

import pytest

from helpers import isolated
from saved_training import CASES

TRAIN = ["train_" + case for case in CASES]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """What was saved, and the losses of the process that has the library, and of the other one."""
    folder = str(tmp_path_factory.mktemp("models"))

    def run(names, load):
        environment = {"BLOCKCELL_TEST_MODELS": folder, "BLOCKCELL_TEST_LOAD": load}
        return isolated.run("saved_training", names, environment)

    saved = run(["save_" + case for case in CASES], "1")
    return saved, run([*TRAIN, "registered"], "1"), run([*TRAIN, "registered"], "0")


def test_processes(runs):
    _, with_library, without = runs
    assert isolated.value(with_library["registered"])
    assert not isolated.value(without["registered"])


@pytest.mark.parametrize("case", CASES)
def test_trains_without_the_library(runs, case):
    saved, with_library, without = runs
    isolated.value(saved["save_" + case])
    want, got = (isolated.value(run["train_" + case]) for run in (with_library, without))
    assert len(set(want)) == 3, "nothing was trained"
    assert got == pytest.approx(want, rel=2e-5)
