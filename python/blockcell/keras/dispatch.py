"""Runs a layer's sequence on the kernels; says once for each layer where Keras's own path runs."""

import logging
import weakref
from typing import Any, Optional, Set

import tensorflow as tf

from blockcell.keras import kinds, reasons, scope, sequences

_logged: "weakref.WeakKeyDictionary[Any, Set[str]]" = weakref.WeakKeyDictionary()


class NotServedError(RuntimeError):
    """A layer that has to run on the kernels, by `enable(strict=True)`, cannot."""


def refused(layer: Any, x: Any, mask: Any) -> bool:
    """Whether a call has to run on Keras's own path; logs it once for each layer and reason.

    Args:
      layer: A recurrent layer of Keras.
      x: Its inputs.
      mask: Its mask, a tensor or None.

    Raises:
      NotServedError: It has to, and must not.
    """
    strict = scope.get().of(layer)
    if strict is None:
        return True
    reason = reasons.of_layer(layer) or reasons.of_call(layer, x, mask)
    if reason is None:
        return False
    # On a GPU, or in a file, nothing is lost.
    expected = reason in (reasons.GPU, reasons.FILE)
    if strict and not expected:
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


def run(layer: Any, x: Any, states: Any, mask: Optional[Any]) -> sequences.Result:
    """Computes what the layer's loop over time does.

    Args:
      layer: The layer, which `refused` has not refused.
      x: Its inputs after dropout, float32 or float16.
      states: A list of the states before the first step.
      mask: Its mask, a tensor or None.

    Returns:
      A `sequences.Result`.
    """
    cell = layer.cell
    weights = [cell.kernel, cell.recurrent_kernel, cell.bias]
    weights = [value if value is None else tf.convert_to_tensor(value) for value in weights]
    options = sequences.Options(
        layer=layer,
        go_backwards=layer.go_backwards,
        return_sequences=layer.return_sequences,
        time_major=getattr(layer, "time_major", False),
        zero_output_for_mask=bool(layer.zero_output_for_mask),
    )
    if kinds.of(layer) == kinds.LSTM:
        return sequences.lstm(x, states, weights, mask, options)
    return sequences.gru(x, states, weights, mask, options, cell.reset_after)


def first(mask: Any) -> Optional[Any]:
    """The mask as a tensor, or None. Keras may give a list, one for each input."""
    if isinstance(mask, (list, tuple)):
        mask = mask[0]
    return mask if mask is None else tf.convert_to_tensor(mask)
