"""Constant weights in int8: how they are chosen, how precise they are, and where they run."""

import pytest
import tensorflow as tf

from helpers import isolated

INT8 = {"BLOCKCELL_WEIGHTS": "int8"}
LIMIT = 5e-2
"""Of the scaled errors of sequences."""


def run(name, environment=None, imported=True):
    outcomes = isolated.run("int8", [name], {"BLOCKCELL_WEIGHTS": None, **(environment or {})})
    return isolated.value(outcomes[name])


@pytest.mark.parametrize(
    "value, weights",
    [
        (None, "float32"),
        ("", "float32"),
        ("int8", "int8"),
        ("int8_except_x", "int8_except_x"),
        ("int4", "float32"),
    ],
)
def test_environment(value, weights):
    assert run("chosen", {"BLOCKCELL_WEIGHTS": value}) == weights


def test_arguments():
    weights, *errors = run("given")
    assert weights == "int8_except_x" and len(errors) == 5
    assert all("already int8_except_x in this process" in error for error in errors[:2])
    assert "'int4'" in errors[2] and "weights='int8'" in errors[3] and "keep_x" in errors[4]


@pytest.mark.parametrize("weights", ["int8", "int8_except_x"])
def test_accuracy(weights):
    errors = run("errors", {"BLOCKCELL_WEIGHTS": weights})
    assert errors
    for op, (constant, fed, same, *ran) in errors.items():
        assert 1e-4 < constant < LIMIT and fed < 1e-5, op
        assert same and ran == [2, 2, 0], op


def test_float32_is_the_default():
    for op, (constant, _, same, *ran) in run("errors").items():
        assert constant < 1e-5 and same and ran == [0, 0, 0], op


def test_threads():
    assert run("of_threads", INT8)


def test_gradients_are_refused():
    message = run("refused", INT8)
    assert "BlockLSTMGrad: weights must be in float32 where gradients are computed" in message


def test_node():
    differs, ran, message = run("of_a_node")
    assert differs and ran == 1
    assert "BlockLSTMV2: _blockcell_weights must be one of float32, int8" in message


def test_noted_errors():
    noted, error, same, is_over = run("noted_errors")
    [(name, errors)] = noted.items()  # The weights of the other node are fed.
    assert name == "constant/BlockLSTMV2" and errors["op"] == "BlockLSTMV2"
    assert errors["calls"] == 2 and abs(errors["largest"] - error) < 1e-5
    assert 1e-6 < errors["mean"] < errors["largest"]
    assert same and is_over


def test_loop():
    error, ran = run("of_a_loop", INT8)
    assert 1e-4 < error < LIMIT and ran.get("BlockcellLSTMLayer") == 1


def test_cudnn():
    found = run("of_cudnn", INT8)
    assert len(found) == 12
    for case, (constant, fed, same, *ran) in found.items():
        assert 1e-4 < constant < LIMIT and fed < 1e-5, case
        assert same and ran == [2, 2, 0], case


def test_cudnn_in_float32():
    for case, (constant, _, same, *ran) in run("of_cudnn").items():
        assert constant < 1e-5 and same and ran == [0, 0, 0], case


def test_cudnn_constant_that_is_fed_in_other_steps():
    """All steps of a session share the kernel of a node of these ops, by its name."""
    for same, constant, fed in run("of_a_session", INT8):
        assert same and 1e-4 < constant < LIMIT and fed < 1e-5


def test_cudnn_trains_in_float32():
    ran, error, said = run("of_training", INT8)
    assert ran == 0 and error < 1e-5
    assert "CudnnRNNBackpropV3: weights must be in float32 where gradients are computed" in said


@pytest.mark.skipif(tf.__version__.startswith("1."), reason="functions of TensorFlow 2")
def test_cudnn_in_a_function():
    error, same, ran = run("of_a_function", INT8)
    assert 1e-4 < error < LIMIT and same and ran == 2


def test_noted_errors_of_cudnn():
    noted, error = run("noted_errors_of_cudnn")
    [(name, errors)] = noted.items()
    assert name == "CudnnRNNV3" == errors["op"] and errors["calls"] == 1
    assert abs(errors["largest"] - error) < 1e-4


@pytest.mark.skipif(tf.__version__.startswith("1."), reason="Keras's layers of TensorFlow 2")
def test_keras():
    for layer, (errors, ran, said) in run("of_keras").items():
        assert all(1e-4 < error < LIMIT for error in errors) and ran >= 2, (layer, errors, ran)
        assert "weights must be in float32 where gradients are computed" in said, layer
