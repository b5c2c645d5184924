"""Modules that are loaded at their first use, for libraries that import more than one call of them needs."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
import types
from typing import Any

_lock = threading.RLock()


class _Deferred(types.ModuleType):
    """Stands in `sys.modules` for a module until one of its names is asked for."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # the import system looks at these without using the module
            raise AttributeError(name)
        with _lock:
            if sys.modules.get(self.__name__) is self:
                del sys.modules[self.__name__]
            return getattr(importlib.import_module(self.__name__), name)


def defer(name: str) -> None:
    """Let `import name` succeed at once and load the module when something in it is used; no effect on a loaded module.

    Raises ModuleNotFoundError if there is no such module.
    """
    with _lock:
        if name in sys.modules:
            return
        spec = importlib.util.find_spec(name)
        if spec is None:
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)
        stand_in = _Deferred(name)
        stand_in.__spec__ = spec
        stand_in.__path__ = list(spec.submodule_search_locations or ())  # so that submodules can be imported
        sys.modules[name] = stand_in
        parent, _, child = name.rpartition(".")
        if parent:  # as an import does
            setattr(sys.modules[parent], child, stand_in)
