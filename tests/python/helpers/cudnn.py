"""Compares the cuDNN RNN ops with the oracle."""

import numpy as np

from blockcell_tools.cudnn_calls import (
    FORWARD_INPUTS,
    backprop_op,
    forward_op,
    run,
)
from blockcell_tools.reference import cudnn
from blockcell_tools.reference.cudnn_inputs import (
    BACKPROP,
    FORWARD,
    LIMIT,
    VERSIONS,
    expected,
    inputs_of,
    params_of,
    suffix,
)
from blockcell_tools.reference.inputs import scaled_error

__all__ = [
    "BACKPROP",
    "FORWARD",
    "FORWARD_INPUTS",
    "LIMIT",
    "MODES",
    "VERSIONS",
    "assert_accurate",
    "backprop_op",
    "expected",
    "forward_op",
    "inputs_of",
    "params_of",
    "run",
    "slope_along",
    "suffix",
]

MODES = tuple(cudnn.GATES)


def assert_accurate(network, inputs, got, what="", time_major=True, masks=None, limit=None):
    """Compares what `run` returned with the oracle: values, shapes, types."""
    dtype = inputs["input"].dtype
    limit = LIMIT[dtype.type] if limit is None else limit
    want = expected(network, inputs, time_major, masks)
    for name in FORWARD + BACKPROP:
        if name not in got:
            assert "reserve_space" in got and name in BACKPROP, f"{what}: no {name}"
            continue
        assert got[name].dtype == dtype, f"{what} {name} is {got[name].dtype}"
        if name not in want:  # Only lstm has a second state; its places hold nothing.
            like = np.zeros(()) if name == "output_c" else inputs["input_c"]
            np.testing.assert_array_equal(got[name], np.zeros_like(like), f"{what} {name}")
            continue
        error = scaled_error(got[name], want[name])
        assert error <= limit, f"{what} {name}: scaled error {error:.3g} is above {limit:.3g}"


def slope_along(network, inputs, name, gradient, **attributes):
    """The slope of a loss along its gradient by finite differences, over what the gradient says.

    Args:
      network: A `cudnn.Network`.
      inputs: What `inputs_of` returns; the loss is the sum of outputs times their gradients there.
      name: The input that the gradient is of.
      gradient: The gradient.
      **attributes: As of `run`.
    """
    step = 2e-3 * gradient / np.linalg.norm(gradient)

    def loss(sign):
        moved = {**inputs, name: (inputs[name] + sign * step).astype(np.float32)}
        got = run(network, moved, **attributes)
        return sum(np.vdot(got[n].astype("d"), inputs[n + "_backprop"]) for n in FORWARD)

    return (loss(+1) - loss(-1)) / (2 * np.vdot(gradient.astype("d"), step))
