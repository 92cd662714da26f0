"""Runs a layer's sequence on the kernels; says once for each layer where Keras's own path runs."""

import logging
import weakref
from typing import Any, Optional, Set

import tensorflow as tf

from blockcell.keras import (
    functions,
    inference,
    kinds,
    reasons,
    run_counts,
    scope,
    sequences,
    shapes,
)

_logged: "weakref.WeakKeyDictionary[Any, Set[str]]" = weakref.WeakKeyDictionary()


class NotServedError(RuntimeError):
    """A layer that has to run on the kernels, by `enable(strict=True)`, cannot."""


def refused(layer: Any, x: Any, infers: bool) -> bool:
    """Whether a call has to run on Keras's own path; logs it once for each layer and reason.

    Args:
      layer: A recurrent layer of Keras.
      x: Its inputs.
      infers: Whether it is known not to train.

    Raises:
      NotServedError: It has to, and must not.
    """
    if scope.get().of(layer) is None:
        return True
    return _keeps(layer, reasons.of_layer(layer) or reasons.of_call(layer, x, infers))


def misfits(layer: Any, given: shapes.Given) -> bool:
    """The same of a call that `refused` has not refused, by the shapes of what it is given."""
    return _keeps(layer, shapes.unusual(layer, given))


def _keeps(layer: Any, reason: Optional[str]) -> bool:
    """Whether there is a reason for Keras's own path."""
    if reason is None:
        return False
    # On a GPU, or in a file, nothing is lost.
    expected = reason in (reasons.GPU, reasons.FILE)
    how = scope.get().of(layer)
    if how is not None and how.strict and not expected:
        raise NotServedError(f"blockcell.keras.enable(strict=True): {_message(layer, reason)}")
    say_once(layer, reason, logging.INFO if expected else logging.WARNING)
    return True


def say_once(layer: Any, reason: str, level: int = logging.WARNING) -> None:
    """Logs why Keras's own path runs a layer, once for each layer and reason."""
    logged = _logged.setdefault(layer, set())
    if reason not in logged:
        logged.add(reason)
        logging.getLogger("blockcell").log(level, "%s", _message(layer, reason))


def _message(layer: Any, reason: str) -> str:
    return f"{layer.name}: Keras's own path runs, because {reason}."


def _say_how(layer: Any) -> None:
    """Logs how the kernels compute a layer, once for each layer."""
    logger = logging.getLogger("blockcell")
    logged = _logged.setdefault(layer, set())
    if "" in logged or not logger.isEnabledFor(logging.DEBUG):
        return
    logged.add("")
    words = (layer.name, layer.compute_dtype, *run_counts.how(layer))
    logger.debug("%s: blockcell's kernels run, in %s, with products at %s, on %s.", *words)


def run(layer: Any, given: shapes.Given, infers: bool) -> sequences.Result:
    """Computes what the layer's loop over time does.

    Args:
      layer: The layer, which `refused` has not refused.
      given: What it is called with, after dropout; which does not misfit.
      infers: Whether it is known not to train.

    Returns:
      A `sequences.Result`.
    """
    _say_how(layer)
    x, states, mask, _ = shapes.made_equal(layer, given)
    cell = layer.cell
    weights = [cell.kernel, cell.recurrent_kernel, cell.bias]
    weights = [value if value is None else tf.convert_to_tensor(value) for value in weights]
    options = sequences.Options(
        layer=layer,
        go_backwards=layer.go_backwards,
        return_sequences=layer.return_sequences,
        time_major=getattr(layer, "time_major", False),
        zero_output_for_mask=bool(layer.zero_output_for_mask),
        functions=functions.of(cell),
    )
    is_lstm = kinds.of(layer) == kinds.LSTM
    if (is_lstm or cell.reset_after) and inference.is_certain(infers):
        return inference.run(is_lstm, x, states, weights, mask, options)
    if is_lstm:
        return sequences.lstm(x, states, weights, mask, options)
    return sequences.gru(x, states, weights, mask, options, cell.reset_after)


def given(layer: Any, x: Any, states: Any, mask: Any) -> shapes.Given:
    """What a layer is called with, as tensors.

    Args:
      layer: The layer.
      x: The inputs.
      states: The states before the first step, or the only one.
      mask: The mask, or None. Keras may give a list of masks, one for each input.
    """
    states = states if isinstance(states, (list, tuple)) else [states]
    mask = mask[0] if isinstance(mask, (list, tuple)) else mask
    mask = mask if mask is None else tf.convert_to_tensor(mask)
    states = [tf.convert_to_tensor(state) for state in states]
    in_graph = not tf.executing_eagerly()
    rows_are_equal = in_graph and shapes.have_rows_of_inputs(layer, x, states)
    return shapes.Given(x, states, mask, rows_are_equal)
