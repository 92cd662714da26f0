"""Replicas and workers that train one model by `fit`."""

import pytest
import tensorflow as tf

from helpers import isolated

if tf.__version__.startswith("1."):
    pytest.skip("blockcell.keras is for TensorFlow 2", allow_module_level=True)
KERAS3 = hasattr(tf.keras.layers.LSTM, "inner_loop")


def outcome(name):
    return isolated.value(isolated.run("keras_workers", [name])[name])


def check(off, on):
    """The losses, and that the kernels ran in both layers where they were to."""
    assert on[0] == pytest.approx(off[0], rel=1e-5)
    assert off[1] == [0, 0] and min(on[1]) > 0


def test_two_replicas():
    check(*outcome("two_replicas"))


@pytest.mark.skipif(KERAS3, reason="fit of Keras 3 takes no data of several workers")
def test_two_workers():
    off, on = outcome("two_workers")
    for both in zip(off, on):
        check(*both)
    assert on[0][0] == on[1][0]  # Each worker has the same weights.
