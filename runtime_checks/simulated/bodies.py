"""The bodies of torch's own Python functions, without the question at their start whether a mode wants the call for itself.

A mode that calls `F.layer_norm` while it is on would be called with it again, for ever; one that is off sees nothing of what happens
inside. A copy of the function in whose globals that question is always answered with no does its work under the mode.
"""
from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch

_QUESTIONS = ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")


class _Globals(dict[str, Any]):
    """A module's names as they are at each moment, but for the questions."""

    def __init__(self, names: dict[str, Any]) -> None:
        super().__init__({"__builtins__": names["__builtins__"], **{name: _no for name in _QUESTIONS if name in names}})
        self._names = names

    def __missing__(self, name: str) -> Any:
        return self._names[name]


class Bodies:
    """Copies made so far."""

    def __init__(self) -> None:
        self._functions: dict[Callable[..., object], Callable[..., object] | None] = {}

    def of(self, func: Callable[..., object]) -> Callable[..., object] | None:
        """The function without its question; None where it is no Python function, or asks in a way that is not known."""
        if func not in self._functions:
            self._functions[func] = self._copy(func)
        return self._functions[func]

    def is_its_own_twin(self, func: Callable[..., object]) -> bool:
        """Whether a C function goes by the same name, which says that it is this one when the body calls it."""
        name: str = getattr(func, "__name__", "")
        return hasattr(torch._C.TensorBase, name) or hasattr(torch._C._VariableFunctions, name)

    def _copy(self, func: Callable[..., object]) -> Callable[..., object] | None:
        if not isinstance(func, FunctionType) or not any(name in func.__globals__ for name in _QUESTIONS):
            return None
        copy = FunctionType(func.__code__, _Globals(func.__globals__), func.__name__, func.__defaults__, func.__closure__)
        copy.__kwdefaults__ = func.__kwdefaults__
        copy.__module__, copy.__qualname__ = func.__module__, func.__qualname__
        return copy


def _no(*_: object) -> bool:
    return False
