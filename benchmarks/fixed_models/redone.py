"""Work that is done again: operators that a body runs on the very values on which it ran them before."""
from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

LIFTED = torch.ops.aten.lift_fresh.default  # what every tensor goes through that is made of Python numbers
UNSET = frozenset({"aten::empty", "aten::empty_like", "aten::empty_strided", "aten::new_empty"})


class Redone(TorchDispatchMode):
    """Counts operators whose inputs are known to be those of an earlier call: the same tensors, unchanged, or results of redone work.

    Every value has a number, and the result of an operator on numbered values is numbered by them: equal by descent, so that values which
    are alike by chance do not count. Views, reads, writes and random numbers are no redone work. Everything that was seen is kept alive.
    """

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self._known: dict[Any, int] = {}
        self._numbers: dict[int, tuple[int, int]] = {}  # a tensor by its identity -> its number, and the writes into its memory until then
        self._writes: dict[int, int] = {}
        self._alive: list[object] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        plain = torch.Tag.nondeterministic_seeded not in func.tags and func.name().partition(".")[0] not in UNSET
        key = (func, _content(args[0]) if func is LIFTED else self._said(args), self._said(sorted(kwargs.items()))) if plain else None
        result = func(*args, **kwargs)
        arguments = func._schema.arguments
        given = {argument.name: value for argument, value in zip(arguments, args, strict=False)} | kwargs
        written = [given[one.name] for one in arguments if one.alias_info is not None and one.alias_info.is_write and one.name in given]
        for one in _tensors(written):
            self._writes[_memory(one)] = self._writes.get(_memory(one), 0) + 1
        made = _tensors(result)
        memories = {_memory(one) for one in _tensors([*args, *kwargs.values()])}
        is_view = func is not LIFTED and all(_memory(one) in memories for one in made)
        if key is not None and key in self._known and not is_view:
            self.count += 1
        first = self._known.setdefault(key, len(self._alive)) if key is not None else len(self._alive)
        for place, one in enumerate([*made, *_tensors(written)]):
            self._alive.append(one)
            self._number(one, hash((first, place)) if key is not None else hash((len(self._alive), "fresh")))
        return result

    def _said(self, value: Any) -> Any:
        """An argument as a part of a key: a tensor by its number, anything else by its kind and words."""
        if isinstance(value, torch.Tensor):
            return "tensor", self._number_of(value)
        if isinstance(value, list | tuple):
            return tuple(self._said(one) for one in value)
        return type(value).__name__, repr(value)

    def _number_of(self, tensor: torch.Tensor) -> int:
        found = self._numbers.get(id(tensor))
        if found is not None and found[1] == self._writes.get(_memory(tensor), 0):
            return found[0]
        self._alive.append(tensor)
        number = hash((len(self._alive), "met"))
        self._number(tensor, number)
        return number

    def _number(self, tensor: torch.Tensor, number: int) -> None:
        self._numbers[id(tensor)] = number, self._writes.get(_memory(tensor), 0)


def _content(tensor: torch.Tensor) -> Any:
    return tensor.dtype, tuple(tensor.shape), repr(tensor.tolist())


def _memory(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, list | tuple):
        return [found for one in value for found in _tensors(one)]
    return [value] if isinstance(value, torch.Tensor) else []
