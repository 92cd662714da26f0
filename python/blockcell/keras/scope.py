"""Which layers shall run on the kernels, as `enable` and `disable` have said."""

import itertools
import weakref
from typing import Any, NamedTuple, Optional


class How(NamedTuple):
    """How a layer shall run on the kernels."""

    strict: bool = False
    """Whether it is an error if it cannot."""
    weights: Optional[str] = None
    """What constant weights are packed as, as nodes say it; None leaves it open."""
    precision: Optional[str] = None
    """How precise matrix products are, the same."""

    def or_as(self, other: "How") -> "How":
        """What both say, and this one where they say different things."""
        return How(
            self.strict or other.strict,
            self.weights or other.weights,
            self.precision or other.precision,
        )


class Scope(NamedTuple):
    """What shall run on the kernels."""

    everything: Optional[How] = None
    """How every layer of the process shall; None if they need not at all."""
    layers: Any = weakref.WeakKeyDictionary()
    """How some layers shall, by layer."""

    def is_empty(self) -> bool:
        """Whether it holds no layer."""
        return self.everything is None and not self.layers

    def of(self, layer: Any) -> Optional[How]:
        """How a layer shall; None if it shall not."""
        own = self.layers.get(layer)
        if own is None and hasattr(layer, "uses_blockcell"):  # A class of `blockcell.keras`.
            own = How()
        if own is None:
            return self.everything
        return own if self.everything is None else own.or_as(self.everything)

    def with_layers(self, layers: Any, how: How) -> "Scope":
        """The same, and these layers."""
        changed = weakref.WeakKeyDictionary(self.layers)
        changed.update((layer, how) for layer in layers)
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
