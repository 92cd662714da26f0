"""Which layers shall run on the kernels, as `enable` and `disable` have said."""

import itertools
import weakref
from typing import Any, NamedTuple, Optional


class Wish(NamedTuple):
    """How layers shall run on the kernels."""

    strict: bool = False
    """Whether it is an error if one cannot."""


class Scope(NamedTuple):
    """What shall run on the kernels."""

    everything: Optional[Wish] = None
    """How every layer of the process shall."""
    layers: Any = weakref.WeakKeyDictionary()
    """How some layers shall, by layer."""

    def is_empty(self) -> bool:
        """Whether it holds no layer."""
        return self.everything is None and not self.layers

    def of(self, layer: Any) -> Optional[Wish]:
        """How a layer shall run on the kernels; None if it shall not."""
        own = self.layers.get(layer)
        if own is None and hasattr(layer, "uses_blockcell"):  # A class of `blockcell.keras`.
            own = Wish()
        wishes = [wish for wish in (own, self.everything) if wish is not None]
        return max(wishes) if wishes else None

    def with_everything(self, wish: Wish) -> "Scope":
        """The same, and every layer."""
        return self._replace(everything=wish)

    def with_layers(self, layers: Any, wish: Wish) -> "Scope":
        """The same, and these layers."""
        changed = weakref.WeakKeyDictionary(self.layers)
        changed.update((layer, wish) for layer in layers)
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


def wish_of(layer: Any) -> Optional[Wish]:
    """How a layer shall run on the kernels now; None if it shall not."""
    return _scope.of(layer)


def label(layer: Any) -> str:
    """A name for a layer that no other layer of the process has."""
    if layer not in _labels:
        _labels[layer] = f"{layer.name}#{next(_numbers)}"
    return _labels[layer]
