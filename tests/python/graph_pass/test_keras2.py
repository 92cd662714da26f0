"""SavedModels that Keras of TensorFlow 2.4 to 2.15 wrote.

Outputs and gradients are compared with those written beside the models, and what extreme inputs
give with TensorFlow alone.
"""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from helpers import isolated
from helpers.sampling import WHOLE

TF1 = tf.__version__.startswith("1.")
# The layers that run cuDNN's operations, of those that the signature calls.
LAYERS = {
    "lstm": {"CudnnRNN": 2},
    "gru": {"CudnnRNN": 1},
    "both_directions": {"CudnnRNN": 2},
    "states": {"CudnnRNN": 1},
    "time_major": {"CudnnRNN": 1},
    "half": {"CudnnRNN": 1},
    "masked": {"CudnnRNNV3": 1},
    # Behind the end of a row, the outputs of the two implementations differ.
    "masked_outputs": {},
    "other_order": {"CudnnRNN": 1},
}
# The gradients of layers that do, where a function computes them.
TRAINED = dict.fromkeys(LAYERS, 1)
TRAINED.update(lstm=2, both_directions=2, other_order=0)
# What a loaded object computes otherwise than the saved model, also with TensorFlow alone: it has
# no masks, and another first state.
OTHERWISE = ("masked", "masked_outputs", "states")
# `tf.saved_model.load` of TensorFlow 2.4 leaves out by which attributes Keras marks functions.
KEEPS_MARKS = not tf.__version__.startswith("2.4.")
# A TensorFlow reads the models of earlier ones. 1.15 lacks ops and attributes of the later ones.
VERSION = (2, 9) if TF1 else tuple(map(int, tf.__version__.split(".")[:2]))
RELEASES = [
    release
    for release in ("2.4", "2.9", "2.12", "2.15")
    if tuple(map(int, release.split("."))) <= VERSION
]
LAST = [f"{RELEASES[-1]}-{name}" for name in LAYERS]
# Loading takes seconds.
FIRST = [f"{RELEASES[0]}-{name}" for name in ("lstm", "gru")]
EVERY = [f"{release}-{name}" for release in RELEASES for name in LAYERS]
MODELS = EVERY if WHOLE else list(dict.fromkeys(FIRST + LAST))
if TF1:
    MODELS.remove("2.9-states")


def limit(model):
    return 4e-3 if model.endswith("half") else 2e-5


@pytest.fixture(scope="module")
def sessions():
    return isolated.run("keras2", ["session_" + model for model in MODELS])


def test_all_models_are_there():
    files = {path.name for path in (Path(__file__).parent / "keras2").glob("*.tar.xz")}
    releases = ("2.4", "2.9", "2.12", "2.15")
    assert files == {f"{release}-{name}.tar.xz" for release in releases for name in LAYERS}


@pytest.mark.parametrize("model", MODELS)
def test_session(sessions, model):
    got = isolated.value(sessions["session_" + model])
    assert got["errors"]
    assert all(error <= limit(model) for error in got["errors"].values()), got["errors"]
    chosen = {op: n for op, n in got["rewritten"].items() if n and op.startswith("Cudnn")}
    assert chosen == LAYERS[model.split("-")[1]]


FUNCTIONS = [] if TF1 else ["function_" + model for model in MODELS]
EDGES = ["edges_" + model for model in MODELS if model in LAST]
TRAININGS = (
    [] if TF1 else ["training_" + model for model in LAST if model.endswith(("-lstm", "-gru"))]
)
# In the other cases others see what the forward half keeps, or the function is known already.
REWRITTEN = ("in a function", "in a loop")


@pytest.fixture(scope="module")
def stock():
    return isolated.run("keras2", FUNCTIONS + EDGES + TRAININGS, {"BLOCKCELL_OVERRIDE": "0"})


@pytest.fixture(scope="module")
def ours():
    return isolated.run("keras2", FUNCTIONS + EDGES + TRAININGS)


def assert_same(want, got, model):
    assert set(want) == set(got)
    for name in want:
        value, result = np.array(want[name], np.float64), np.array(got[name], np.float64)
        assert value.shape == result.shape, name
        scale = max(1.0, np.abs(np.nan_to_num(value)).max(initial=0.0))
        np.testing.assert_allclose(result, value, rtol=0, atol=limit(model) * scale)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_outputs_and_gradients_of_loaded_objects(stock, ours, name):
    want, got = isolated.value(stock[name]), isolated.value(ours[name])
    assert_same(want["values"], got["values"], name)
    assert got["has_marks"] == KEEPS_MARKS
    # Without the marks, the loops of the layers may still become one op each.
    assert bool(got["rewritten"]["CudnnRNN"]) == KEEPS_MARKS
    model = name.split("-")[1]
    assert got["trains"]["CudnnRNNBackprop"] == (TRAINED[model] if KEEPS_MARKS else 0)
    if model not in OTHERWISE:
        assert all(error <= limit(name) for error in got["errors"].values()), got["errors"]


@pytest.mark.parametrize("name", TRAININGS)
def test_gradients(stock, ours, name):
    want, got = isolated.value(stock[name]), isolated.value(ours[name])
    layers = TRAINED[name.split("-")[1]]
    for case in want:
        if isinstance(want[case]["values"], str):
            assert got[case]["values"] == want[case]["values"], case
        else:
            assert_same(want[case]["values"], got[case]["values"], name)
        rewritten = got[case]["rewritten"]
        is_rewritten = KEEPS_MARKS and case in REWRITTEN
        assert rewritten["CudnnRNNBackprop"] == (layers if is_rewritten else 0), case


@pytest.mark.parametrize("name", EDGES)
def test_edges(stock, ours, name):
    want, got = isolated.value(stock[name]), isolated.value(ours[name])
    assert set(want) == set(got)
    for case in want:
        if isinstance(want[case], str):
            assert got[case] == want[case], case
        else:
            assert_same(want[case], got[case], name)


def test_switched_off():
    name = "session_" + MODELS[0]
    without, loops = (
        isolated.value(isolated.run("keras2", [name], {variable: "0"})[name])
        for variable in ("BLOCKCELL_REWRITE", "BLOCKCELL_CUDNN")
    )
    assert not any(without["rewritten"].values())
    # Without cuDNN's ops, the loops of the layers may still become one op each.
    rewritten = {op for op, count in loops["rewritten"].items() if count}
    assert rewritten <= {"BlockcellKerasLSTM", "BlockcellKerasGRU"}
    assert all(error <= limit(name) for error in loops["errors"].values()), loops["errors"]
