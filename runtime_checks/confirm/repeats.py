"""Counts torch calls that are made again with the same arguments, on the lines that a finding calls redone work."""
from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import torch
from torch.overrides import TorchFunctionMode

from hostlint.runtime_checks.call_names import named
from hostlint.runtime_checks.events import Origin
from hostlint.runtime_checks.frames import origin_of

if TYPE_CHECKING:
    from hostlint.runtime_checks.confirm.counters import Counters
    from hostlint.runtime_checks.confirm.counting import Paths
    from hostlint.runtime_checks.confirm.plan import Plan

KEPT = 4096  # identities remembered; a program that makes more starts over


class Repeats(TorchFunctionMode):
    """A call is the same as an earlier one at its place if its tensors are: same memory, same version, same shape and type."""

    def __init__(self, plan: Plan, paths: Paths, counters: Counters) -> None:
        super().__init__()
        self._spans = plan.redone
        self._paths = paths
        self._counters = counters
        self._made: set[object] = set()

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        given = kwargs or {}
        if not torch.compiler.is_compiling() and (place := self._place()) is not None:
            self._count(func, args, given, *place)
        return func(*args, **given)

    def _place(self) -> tuple[str, int] | None:
        frame = sys._getframe(2)
        while frame.f_back is not None and origin_of(frame.f_code.co_filename) in (Origin.TORCH, Origin.HOSTLINT):
            frame = frame.f_back
        path = self._paths.real(frame.f_code.co_filename)
        line = frame.f_lineno
        return (path, line) if any(first <= line <= last for first, last in self._spans.get(path, ())) else None

    def _count(self, func: Callable[..., object], args: tuple[object, ...], kwargs: Mapping[str, object], path: str, line: int) -> None:
        name = named(func).spelled
        again = self._seen_before((path, line, name, _identity(args), _identity(tuple(kwargs.items()))))
        kind, thread = "again" if again else "first", threading.current_thread().name
        about = {"kind": kind, "call": name, "path": path, "line": line, "thread": thread}
        self._counters.add(self._counters.tally((kind, name, path, line, thread), about), time.perf_counter())

    def _seen_before(self, key: object) -> bool:
        if key in self._made:
            return True
        if len(self._made) >= KEPT:
            self._made.clear()
        self._made.add(key)
        return False


def _identity(value: object) -> object:
    """What makes two arguments the same, without reading a value of a tensor."""
    if isinstance(value, torch.Tensor):
        return _tensor_identity(value)
    if isinstance(value, (tuple, list)):
        return tuple(map(_identity, value))
    if isinstance(value, slice):
        return (_identity(value.start), _identity(value.stop), _identity(value.step))
    return value if isinstance(value, (int, float, str, bool, complex, type(None), torch.dtype, torch.device)) else id(value)


def _tensor_identity(tensor: torch.Tensor) -> object:
    with torch._C.DisableTorchFunction():
        version = 0 if tensor.is_inference() else tensor._version
        return (tensor.data_ptr(), version, tuple(tensor.shape), tensor.stride(), tensor.dtype)
