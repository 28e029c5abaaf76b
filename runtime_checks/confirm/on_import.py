"""Runs something right after a module has been imported, whenever that happens, and at once if it has been."""
from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType


class _Finder(MetaPathFinder):
    def __init__(self, name: str, action: Callable[[], None]) -> None:
        self.name = name
        self.action = action

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname != self.name or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is None or spec.loader is None:
            sys.meta_path.insert(0, self)
            return spec
        spec.loader = _Loader(spec.loader, self.action)
        return spec


class _Loader(Loader):
    """The module's own loader, and then the action."""

    def __init__(self, own: Loader, action: Callable[[], None]) -> None:
        self._own = own
        self._action = action

    def __getattr__(self, name: str) -> object:
        return getattr(self._own, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._own.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._own
        module.__loader__ = self._own
        self._own.exec_module(module)
        self._action()


def after_import(name: str, action: Callable[[], None]) -> None:
    """Calls `action()` once, after the module `name` has run."""
    if name in sys.modules:
        action()
    else:
        sys.meta_path.insert(0, _Finder(name, action))
