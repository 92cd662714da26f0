"""Models saved on Keras's own path and loaded on the kernels, and the other way round."""

import pytest
import tensorflow as tf

from helpers import isolated

if tf.__version__.startswith("1."):
    pytest.skip("blockcell.keras is for TensorFlow 2", allow_module_level=True)

# Processes that run after each other.
PROCESSES = [
    ["save_without"],
    ["save_by_name", "save_with", "load_with", "load_with_again", "export_with"],
    ["export_on_kernels"],
    ["load_export_without", "load_without", "load_without_again", "load_by_name"],
    ["load_on_kernels"],
]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    environment = {"BLOCKCELL_TEST_MODELS": str(tmp_path_factory.mktemp("models"))}
    found = {}
    for names in PROCESSES:
        found.update(isolated.run("keras_files", names, environment))
    return found


@pytest.mark.parametrize("name", [name for names in PROCESSES for name in names])
def test_process(outcomes, name):
    isolated.value(outcomes[name])


@pytest.mark.parametrize(
    "ours, stock",
    [
        ("load_with", "load_without_again"),
        ("load_with_again", "load_without"),
    ],
)
def test_training_goes_on_with_equal_losses(outcomes, ours, stock):
    ours, stock = isolated.value(outcomes[ours]), isolated.value(outcomes[stock])
    assert ours and ours.keys() == stock.keys()
    for name in ours:
        assert ours[name] == pytest.approx(stock[name], rel=1e-5)
