"""Whose gradients TensorFlow uses."""

import pytest

from helpers import gradient_cases, isolated, ways

OURS = "blockcell.gradients.rules"
STOCK = "tensorflow.python.ops.rnn_grad"
CONTRIB = "tensorflow.contrib.rnn.python.ops."


def outcome(name):
    return isolated.value(isolated.run("replacing", [name], {"BLOCKCELL_OVERRIDE": "0"})[name])


def test_those_that_are_there_can_be_kept():
    kept, after_info, replaced, still_replaced = outcome("keep_then_replace_then_keep")
    for op in ("BlockLSTM", "BlockLSTMV2"):
        assert kept[op] == STOCK and kept[gradient_cases.GRADIENT_OPS[op]] is None
    for op, module in (("GRUBlockCell", "gru"), ("LSTMBlockCell", "lstm")):
        if ways.TF1:  # The ones of tf.contrib. Second derivatives would be wrong with them.
            assert kept[op] == CONTRIB + module + "_ops"
            assert kept[gradient_cases.GRADIENT_OPS[op]] is None
        else:
            assert kept[op] == kept[gradient_cases.GRADIENT_OPS[op]] == OURS
    assert kept["BlockGRU"] == kept["BlockGRUGrad"] == OURS
    assert after_info == kept
    assert set(replaced) == set(gradient_cases.OPS) | set(gradient_cases.GRADIENT_OPS.values())
    assert set(replaced.values()) == {OURS}, replaced
    assert still_replaced == replaced


@pytest.mark.skipif(ways.TF1, reason="tf.contrib has taken the name in TensorFlow 1.15")
def test_one_that_a_user_registered_before_loading():
    kept, replaced = outcome("one_that_a_user_registered_before_loading")
    assert kept == ["replacing", None]
    assert replaced == [OURS, OURS]


def test_ours_make_way_for_one_that_a_user_registers_after_loading():
    """With it goes ours of its gradient op: it might drop what arrives at saved activations."""
    first, second, used = outcome("those_that_a_user_registers_after_loading")
    assert first == {"GRUBlockCell": "replacing", "GRUBlockCellGrad": None}
    assert second == {"BlockLSTM": OURS, "BlockLSTMGrad": "replacing"}
    assert used == 7.0


def test_a_user_cannot_register_two():
    assert "Registering two gradient" in outcome("two_that_a_user_registers")


@pytest.mark.skipif(ways.TF1, reason="TensorFlow 2 only")
def test_what_ran_before_loading_uses_ours_afterwards():
    found = outcome("what_ran_before")
    assert min(found["before"].values()) > 0.1  # TensorFlow's are wrong.
    assert max(found["tape"].values()) < 1e-5
    assert max(found["function"].values()) < 1e-5


@pytest.mark.skipif(not ways.TF1, reason="TensorFlow 1.15 only")
def test_eager_mode_of_1_15():
    found = outcome("eager_mode_of_1_15")
    assert max(found.values()) < 1e-5, found
