"""Walking Python's trees quickly: a scan visits millions of small nodes, and most have no children."""
from __future__ import annotations

import ast

_LEFT_OUT = frozenset({"ctx"})
_CHILDREN: dict[type[ast.AST], tuple[str, ...]] = {ast.Name: (), ast.Constant: ()}


def walk(node: ast.AST) -> list[ast.AST]:
    """The node and all below it, breadth first as `ast.walk` does, without the contexts of names."""
    found = [node]
    for part in found:  # grows while it is walked
        kind = part.__class__
        fields = _CHILDREN.get(kind)
        if fields is None:
            fields = _CHILDREN[kind] = tuple(name for name in kind._fields if name not in _LEFT_OUT)
        for name in fields:
            child = getattr(part, name, None)
            if isinstance(child, ast.AST):
                found.append(child)
            elif isinstance(child, list):
                found += [one for one in child if isinstance(one, ast.AST)]
    return found
