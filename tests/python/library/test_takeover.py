"""One load, and every way of reaching each stock op runs on our kernels.

Each test is a function of `takeover` or `late_load`, run in a process without BLOCKCELL_OVERRIDE.
"""

import pytest
import tensorflow as tf

from helpers import isolated

TF1 = tf.__version__.startswith("1.")

GRAPHS = [
    "session",
    "session_without_optimizer",
    "label",
    "placed_on_a_cpu",
    "loop_of_v1",
    "loop_of_v2",
    "loop_in_loop_of_v1",
    "cond_of_v1",
    "cond_of_v2",
    "map_fn",
    "function_in_graph",
    "function_in_function_in_graph",
    "function_in_loop_of_v1",
    "function_in_loop_of_v2",
    "loop_in_function_in_graph",
    "dataset_in_graph",
    "graph_def",
    "meta_graph",
    "saved_model",
    "several_sessions",
    "empty_shapes",
]
OF_TF1 = ["defun", "defun_not_inlined", "defun_in_loop", "contrib_training"]
OF_TF2 = [
    "eager_raw_ops",
    "eager_raw_ops_of_v1",
    "eager_function",
    "eager_function_in_function",
    "eager_loop_in_function",
    "eager_cond_in_function",
    "eager_map_fn",
    "eager_label_in_function",
    "eager_dataset",
    "eager_threads",
    "eager_bad_input",
    "eager_bad_length",
    "saved_functions",
]
WAYS = GRAPHS + (OF_TF1 if TF1 else OF_TF2)
SWITCHED_OFF = ["unlabelled_is_stock", "label"] + (
    ["contrib_training"] if TF1 else ["eager_unlabelled_is_stock", "eager_label_in_function"]
)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Environment that names a folder of models written without the library."""
    environment = {"BLOCKCELL_TEST_MODELS": str(tmp_path_factory.mktemp("models"))}
    names = ["write_graphs"] + ([] if TF1 else ["write_functions"])
    for outcome in isolated.run("graph_files", names, environment).values():
        isolated.value(outcome)
    return environment


@pytest.fixture(scope="module")
def outcomes(models):
    return isolated.run("takeover", WAYS, models)


@pytest.fixture(scope="module")
def switched_off(models):
    return isolated.run("takeover", SWITCHED_OFF, dict(models, BLOCKCELL_OVERRIDE="0"))


@pytest.mark.parametrize("way", WAYS)
def test_our_kernel_runs(outcomes, way):
    isolated.value(outcomes[way])


@pytest.mark.parametrize("way", SWITCHED_OFF)
def test_with_taking_over_switched_off(switched_off, way):
    isolated.value(switched_off[way])


@pytest.mark.skipif(TF1, reason="the library cannot take over the eager mode of TensorFlow 1.15")
def test_eager_calls_before_loading():
    name = "eager_calls_before_loading"
    isolated.value(isolated.run("late_load", [name])[name])


def test_session_before_loading():
    name = "session_before_loading"
    isolated.value(isolated.run("late_load", [name])[name])


@pytest.mark.skipif(not TF1, reason="TensorFlow 1.15 only")
@pytest.mark.parametrize("cell", ["gru", "lstm", "fused"])
def test_training_with_contrib(outcomes, switched_off, cell):
    ours = isolated.value(outcomes["contrib_training"])[cell]
    stock = isolated.value(switched_off["contrib_training"])[cell]
    assert ours["labels"] and set(ours["labels"]) == {"blockcell"}
    assert stock["labels"] and set(stock["labels"]) == {""}
    assert ours["losses"] == pytest.approx(stock["losses"], rel=1e-4)
    assert ours["losses"][-1] < 0.9 * ours["losses"][0]
