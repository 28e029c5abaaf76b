"""Type annotations as the classes that they name, with how many containers lie around each."""
from __future__ import annotations

import ast
from functools import cache
from typing import NamedTuple

_SAME = frozenset({"Optional", "Union", "Annotated", "Final", "ClassVar", "Required", "NotRequired", "Awaitable", "Coroutine"})
_SEQUENCES = frozenset(
    {"list", "List", "tuple", "Tuple", "set", "Set", "frozenset", "Sequence", "Iterable", "Iterator", "Collection", "deque", "Deque"}
    | {"Generator", "AsyncIterator", "AsyncGenerator", "AsyncIterable", "MutableSequence", "ModuleList"}
)
_MAPPINGS = frozenset({"dict", "Dict", "Mapping", "MutableMapping", "defaultdict", "DefaultDict", "OrderedDict", "ModuleDict"})
_CLASSES = frozenset({"type", "Type"})
_NOTHING = frozenset({"Callable", "Literal", "None"})


class Named(NamedTuple):
    name: str  # dotted, as written
    depth: int  # containers around it: 1 for list[X] and dict[str, X]
    is_class: bool  # type[X]: the class itself


@cache
def named_in(annotation: str) -> tuple[Named, ...]:
    """The classes that an annotation's text names."""
    try:
        tree = ast.parse(annotation.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    return tuple(dict.fromkeys(_named(tree, 0)))


def _named(node: ast.expr, depth: int) -> list[Named]:
    if isinstance(node, (ast.Name, ast.Attribute)):
        name = dotted(node)
        return [Named(name, depth, False)] if name and name not in _NOTHING else []
    if isinstance(node, ast.Constant):
        return [found._replace(depth=found.depth + depth) for found in named_in(node.value)] if isinstance(node.value, str) else []
    if isinstance(node, ast.BinOp):
        return [*_named(node.left, depth), *_named(node.right, depth)]
    if isinstance(node, ast.Subscript):
        return _subscripted(node, depth)
    return []


def _subscripted(node: ast.Subscript, depth: int) -> list[Named]:
    name = dotted(node.value)
    last = name.rpartition(".")[2]
    inner = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    if last in _NOTHING:
        return []
    if last in _SAME:
        return [found for part in inner for found in _named(part, depth)]
    if last in _SEQUENCES:
        return [found for part in inner for found in _named(part, depth + 1)]
    if last in _MAPPINGS:
        return _named(inner[-1], depth + 1)
    if last in _CLASSES:
        return [found._replace(is_class=True) for part in inner for found in _named(part, depth)]
    return [Named(name, depth, False)] if name else []


def dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr}" if base else ""
    return ""
