"""Which layers shall run on the kernels, as `enable` and `disable` have said."""

import itertools
import weakref
from typing import Any, NamedTuple, Optional


class Scope(NamedTuple):
    """What shall run on the kernels, and strictly or not: whether it is an error if it cannot."""

    everything: Optional[bool] = None
    """Whether every layer of the process shall strictly; None if they need not at all."""
    layers: Any = weakref.WeakKeyDictionary()
    """Whether some layers shall strictly, by layer."""

    def is_empty(self) -> bool:
        """Whether it holds no layer."""
        return self.everything is None and not self.layers

    def of(self, layer: Any) -> Optional[bool]:
        """Whether a layer shall strictly; None if it shall not."""
        own = self.layers.get(layer)
        if own is None and hasattr(layer, "uses_blockcell"):  # A class of `blockcell.keras`.
            own = False
        wishes = [strict for strict in (own, self.everything) if strict is not None]
        return max(wishes) if wishes else None

    def with_layers(self, layers: Any, strict: bool) -> "Scope":
        """The same, and these layers."""
        changed = weakref.WeakKeyDictionary(self.layers)
        changed.update((layer, strict) for layer in layers)
        return self._replace(layers=changed)

    def without_layers(self, layers: Any) -> "Scope":
        """The same, but without what was said of these layers."""
        changed = weakref.WeakKeyDictionary(self.layers)
        for layer in layers:
            changed.pop(layer, None)
        return self._replace(layers=changed)


_scope = Scope()
_labels: "weakref.WeakKeyDictionary[Any, str]" = weakref.WeakKeyDictionary()
_numbers = itertools.count()


def get() -> Scope:
    """What shall run on the kernels now."""
    return _scope


def put(scope: Scope) -> None:
    """Sets it."""
    global _scope
    _scope = scope


def label(layer: Any) -> str:
    """A name for a layer that no other layer of the process has."""
    if layer not in _labels:
        _labels[layer] = f"{layer.name}#{next(_numbers)}"
    return _labels[layer]
