"""Calls a function once some modules have been imported, however that happens."""

import importlib.abc
import importlib.machinery
import sys
from typing import Any, Callable, Set


def call(function: Callable[[], None], *names: str) -> None:
    """Calls a function when the last of some modules has been imported completely.

    Args:
      function: The function.
      *names: The modules. One may import another. At once if all are there already.
    """
    waiting = {name for name in names if name not in sys.modules}
    if waiting:
        sys.meta_path.insert(0, _Finder(function, waiting))
    else:
        function()


class _Finder(importlib.abc.MetaPathFinder):
    """Finds modules, as the others would, and notes when they have been imported.

    A program may look for a module without importing it, so it stays until that has happened.
    """

    def __init__(self, function: Callable[[], None], waiting: Set[str]):
        self._function, self._waiting = function, waiting

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        """The module's specification, with a loader that notes its end."""
        if fullname not in self._waiting:
            return None
        place = sys.meta_path.index(self)
        for finder in sys.meta_path[place + 1 :]:
            find = getattr(finder, "find_spec", None)
            spec = find(fullname, path, target) if find else None
            if spec is not None:
                if spec.loader is not None:
                    self._follow(spec.loader, fullname)
                return spec
        return None

    def _follow(self, loader: Any, name: str) -> None:
        execute = loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            self._waiting.discard(name)
            if not self._waiting and self in sys.meta_path:
                sys.meta_path.remove(self)
                self._function()

        loader.exec_module = exec_module
