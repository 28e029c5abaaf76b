"""What a function of torch is called in the table: C functions by where they are found, methods and attributes by their class."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch

from hostlint.torch_ops import function as table_function
from hostlint.torch_ops import method as table_method

if TYPE_CHECKING:
    from hostlint.torch_ops.spec import Op

_SUBSCRIPTS = {"__getitem__": "op.getitem", "__setitem__": "op.setitem"}
_ATEN = {"_local_scalar_dense": "item", "is_nonzero": "is_nonzero"}  # operators that have another name as methods
_SLOTS = {"__get__": "", "__set__": "="}
_HOMES = (
    "torch", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special", "torch.sparse", "torch.nn.init", "torch.nn.utils",
    "torch.nn.utils.rnn", "torch.autograd", "torch.cuda",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Named:
    """A function: as one would write it, and the key of its entry."""

    spelled: str
    key: str  # a dotted name for functions and operators, a bare name or `Class.name` for methods
    is_method: bool

    @classmethod
    def from_text(cls, name: str) -> Named:
        is_method = not name.startswith(("torch.", "op.", "builtins.", "gc."))
        return cls(name, name, is_method)

    @property
    def subscript(self) -> bool:
        return self.key in ("op.getitem", "op.setitem")

    def op(self) -> Op | None:
        return table_method(self.key) if self.is_method else table_function(self.key)


def named(func: Callable[..., object]) -> Named:
    """The name of what a function mode was called with."""
    name: str = getattr(func, "__name__", type(func).__name__)
    descriptor = getattr(func, "__self__", None)
    if name in _SLOTS and descriptor is not None and not isinstance(descriptor, (type, ModuleType)):
        attribute = _attribute(descriptor) + _SLOTS[name]
        return Named(f"Tensor.{attribute}", attribute, is_method=True)
    if isinstance(func, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return _operator(func)
    found = _found().get(func)
    if found is not None:
        return found
    home: str = getattr(func, "__module__", None) or "torch"
    return Named(f"{home}.{name}", f"{home}.{name}", is_method=False)


def _attribute(descriptor: Any) -> str:
    """A property has the name of its getter."""
    return str(getattr(descriptor, "__name__", None) or getattr(getattr(descriptor, "fget", None), "__name__", ""))


def _operator(func: Any) -> Named:
    packet = func.overloadpacket if isinstance(func, torch._ops.OpOverload) else func
    space, _, name = str(packet).rpartition(".")
    if space != "aten":
        return Named(f"torch.ops.{packet}", f"torch.ops.{packet}", is_method=False)
    name = _ATEN.get(name, name)
    is_method = table_function(f"torch.{name}") is None and table_method(name) is not None
    return Named(f"torch.ops.{packet}", name if is_method else f"torch.{name}", is_method=is_method)


@cache
def _found() -> dict[object, Named]:
    """Every function of torch that can be had under a public name, the shortest name first."""
    names: dict[object, Named] = {}
    for key, value in _members(torch.Tensor):
        subscript = _SUBSCRIPTS.get(key)
        names.setdefault(value, Named(f"Tensor.{key}", subscript or key, is_method=subscript is None))
    for home in _HOMES:
        for key, value in vars(_module(home)).items():
            if callable(value) and not isinstance(value, type) and value.__hash__ is not None:
                names.setdefault(value, Named(f"{home}.{key}", f"{home}.{key}", is_method=False))
    return names


def _members(klass: type) -> Iterator[tuple[str, object]]:
    for base in klass.__mro__[:-1]:
        for key in vars(base):
            value = getattr(klass, key, None)
            if callable(value) and not isinstance(value, type):
                yield key, value


def _module(dotted: str) -> ModuleType:
    module: Any = torch
    for part in dotted.split(".")[1:]:
        module = getattr(module, part)
    assert isinstance(module, ModuleType)
    return module
