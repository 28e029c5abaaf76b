"""The kinds of things that a chain may stand for, and the methods that hand on what they are called on."""
from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

LIMIT = 256  # alternatives kept for one chain
_SAME_INSTANCE = frozenset(
    {"to", "cuda", "cpu", "eval", "train", "half", "float", "bfloat16", "double", "requires_grad_", "share_memory", "to_empty", "clone"}
)
_TAKES_ELEMENT = frozenset({"get", "pop", "popleft", "popitem", "setdefault"})
_SAME_ELEMENTS = frozenset({"values", "items", "copy"})
HANDS_ON = _SAME_INSTANCE | _TAKES_ELEMENT | _SAME_ELEMENTS


class Kind(IntEnum):
    INSTANCE = 0  # of a project class or one of its subclasses
    CLASS = 1
    FUNCTION = 2
    MODULE = 3
    EXTERNAL = 4  # a name outside the project
    OBJECT = 5  # what calling such a name gives
    SUPER = 6  # the bases of a class
    # Said of any registry of a class, until it is known of which:
    FILED = 7  # what is filed in the attribute `name` of the instance of `target`
    MADE = 8  # what calling that gives


class Type(NamedTuple):
    kind: Kind
    target: tuple[int, int] = (-1, -1)
    name: str = ""  # EXTERNAL and OBJECT: the dotted name; INSTANCE of a registry, FUNCTION of such: the global that holds it
    depth: int = 0  # containers around it
    exact: bool = False  # INSTANCE: no subclass of it


Types = tuple[Type, ...]


def handed_on(types: Types, name: str) -> Types | None:
    """What `module.to(…)`, `modules.values()` and `modules.pop(…)` give, where the types say that they are meant."""
    if name in _TAKES_ELEMENT and any(found.depth for found in types):
        return tuple(found._replace(depth=found.depth - 1) for found in types if found.depth)
    if name in _SAME_ELEMENTS and any(found.depth for found in types):
        return types
    if name in _SAME_INSTANCE and all(found.kind in (Kind.INSTANCE, Kind.OBJECT) for found in types):
        return types
    return None


def distinct(types: list[Type]) -> Types:
    return tuple(types) if len(types) < 2 else tuple(dict.fromkeys(types))[:LIMIT]
