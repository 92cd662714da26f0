"""Models with the library's own ops, saved by one process and loaded by another."""

import pytest
import tensorflow as tf

from helpers import isolated

TF1 = tf.__version__.startswith("1.")


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """Outcomes of loading what another process has saved."""
    environment = {"BLOCKCELL_TEST_MODELS": str(tmp_path_factory.mktemp("models"))}
    kinds = ["graph"] + ([] if TF1 else ["function"])
    saved = isolated.run("own_ops", ["save_" + kind for kind in kinds], environment)
    for outcome in saved.values():
        isolated.value(outcome)
    return isolated.run("own_ops", ["load_" + kind for kind in kinds], environment)


def test_graph(loaded):
    isolated.value(loaded["load_graph"])


@pytest.mark.skipif(TF1, reason="TensorFlow 2 only")
def test_function(loaded):
    isolated.value(loaded["load_function"])
