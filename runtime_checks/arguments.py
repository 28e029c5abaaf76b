"""The arguments of a call as it runs, in the terms of the table's conditions."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from hostlint.torch_ops.conditions import NOT_LITERAL, ArgumentFacts
from hostlint.torch_ops.copies import largest_free_copy
from hostlint.torch_ops.spec import Returns
from hostlint.values.value import Place

if TYPE_CHECKING:
    from hostlint.torch_ops.spec import Op

HELD_DEPTH = 4
_LITERALS: dict[object, str] = {True: "True", False: "False"}
_BOOLEANS = (torch.bool, torch.uint8)
_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
_NONE = ArgumentFacts(place=Place.PYTHON, literal="None")
_PLAIN = ArgumentFacts(place=Place.PYTHON)
_CONTAINERS = (list, tuple, set, frozenset, Mapping)
_TENSOR_CONDITIONS = {"device": Place.DEVICE, "host": Place.HOST}
_PLACES = {"cuda": Place.DEVICE, "cpu": Place.HOST}


class Facts:
    """Facts about values, given what is known of tensors from outside."""

    __slots__ = ("_is_pinned", "place_of")

    def __init__(self, place_of: Callable[[torch.Tensor], Place], is_pinned: Callable[[torch.Tensor], bool] | None) -> None:
        self.place_of = place_of
        self._is_pinned = is_pinned or torch.Tensor.is_pinned

    def may_be(self, kind: str, values: Sequence[object]) -> bool:
        """A quick look at raw values: False where the condition `kind` cannot hold of any of them."""
        wanted = _TENSOR_CONDITIONS.get(kind)
        if wanted is not None:
            return any(isinstance(value, torch.Tensor) and self.place_of(value) is wanted for value in values)
        return kind != "device-in" or any(isinstance(value, _CONTAINERS) for value in values)

    def of(self, value: object, *, element: bool = False) -> ArgumentFacts:
        if isinstance(value, torch.Tensor):
            facts = self._tensor(value)
            return replace(facts, element=True) if element else facts
        if value is None:
            return _NONE
        if isinstance(value, range):
            return ArgumentFacts(place=Place.PYTHON, sequence=True)
        if isinstance(value, (bool, int, float, complex, str)):
            literal = _LITERALS[value] if isinstance(value, bool) else NOT_LITERAL
            return ArgumentFacts(place=Place.PYTHON, literal=literal, element=element) if element or literal != NOT_LITERAL else _PLAIN
        if isinstance(value, torch.nn.Module):
            return ArgumentFacts(place=Place.PYTHON, evaluating=not value.training)
        if isinstance(value, _CONTAINERS):
            return self._container(value)
        if _is_array(value):
            return ArgumentFacts(place=Place.NUMPY)
        return ArgumentFacts(place=Place.PYTHON, element=True) if element else _PLAIN

    def _tensor(self, value: torch.Tensor) -> ArgumentFacts:
        """Without asking a subclass, which may answer in its own way or refuse."""
        with torch._C.DisableTorchFunctionSubclass():
            return self._plain(value)

    def _plain(self, value: torch.Tensor) -> ArgumentFacts:
        place = self.place_of(value)
        host = place is Place.HOST and value.layout is torch.strided
        return ArgumentFacts(
            place=place,
            rank0=value.dim() == 0,
            boolean=value.dtype in _BOOLEANS,
            integer=value.dtype in _INTEGERS,
            pinned=host and self._is_pinned(value),
            large=host and value.nbytes > largest_free_copy(),
            strided=host and not value.is_contiguous(),
            empty=host and value.numel() == 0,
            sparse=value.layout is not torch.strided and not value.is_nested,
        )

    def _container(self, value: Any) -> ArgumentFacts:
        if not value:
            return ArgumentFacts(place=Place.PYTHON, sequence=isinstance(value, (list, tuple)), empty=True)  # nothing to upload or read
        tensors = list(tensors_in(value))
        return ArgumentFacts(
            place=Place.PYTHON,
            sequence=isinstance(value, (list, tuple)),
            holds_device=any(self.place_of(tensor) is Place.DEVICE for tensor in tensors),
            holds_host=any(self.place_of(tensor) is Place.HOST for tensor in tensors),
            boolean=any(tensor.dtype in _BOOLEANS for tensor in tensors) or None,
        )


def tensors_in(value: Any, depth: int = HELD_DEPTH) -> Iterator[torch.Tensor]:
    """The tensors in a container, down to a few levels."""
    for item in value.values() if isinstance(value, Mapping) else value:
        if isinstance(item, torch.Tensor):
            yield item
        elif depth and isinstance(item, _CONTAINERS):
            yield from tensors_in(item, depth - 1)


def target_place(op: Op, given: Mapping[str, Sequence[object]], facts: Facts) -> Place | None:
    """Where a call puts its result: `device=`, the argument of `to`, cuda(), cpu(), else where the receiver or first argument lives."""
    if op.returns is Returns.DEVICE:
        return Place.DEVICE
    if op.returns is Returns.HOST:
        return Place.HOST
    receiver = given.get("self") or given.get("input")
    own = facts.place_of(receiver[0]) if receiver and isinstance(receiver[0], torch.Tensor) else None
    if op.returns is Returns.MOVE:
        others = (value for name, values in given.items() if name not in ("self", "input") for value in values)
        return next((place for value in others if (place := _named_place(value, facts)) is not None), own)
    asked = [value for value in given.get("device", ()) if value is not None]
    if asked:
        return _named_place(asked[0], facts)
    return own if op.returns is Returns.LIKE else Place.HOST


def is_tensor(value: object) -> bool:
    return isinstance(value, torch.Tensor)


def is_integer(value: object) -> bool:
    """As an index: a number of Python or NumPy, or a 0-dim integer tensor, which torch turns into one."""
    if isinstance(value, torch.Tensor):
        return value.dim() == 0 and value.dtype in _INTEGERS
    return hasattr(value, "__index__") and not isinstance(value, bool)


def is_basic(value: object) -> bool:
    """An index that selects a view."""
    return value is None or value is Ellipsis or isinstance(value, slice) or is_integer(value)


def _named_place(value: object, facts: Facts) -> Place | None:
    """The place that a device, its name or number, a legacy type's name, or a tensor stands for."""
    if isinstance(value, torch.Tensor):
        return facts.place_of(value)
    if isinstance(value, torch.device):
        return _PLACES.get(value.type)
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        return Place.DEVICE
    if isinstance(value, type):
        value = f"{value.__module__}.{value.__name__}"
    if isinstance(value, str):
        name = value.removeprefix("torch.")
        return Place.HOST if name.endswith("Tensor") and "cuda" not in name else _PLACES.get(name.partition(".")[0].partition(":")[0])
    return None


def _is_array(value: object) -> bool:
    kind = type(value)
    return kind.__module__ == "numpy" and kind.__name__ == "ndarray"
