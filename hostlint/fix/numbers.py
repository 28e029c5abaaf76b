"""Whether a name can be told to stand for one number, by the number that stands in for it where it is missing."""
from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from hostlint.fix.loops import bindings_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hostlint.fix.loops import Function


def is_number_by_default(function: Function, name: str) -> bool:
    """`scale = getattr(config, "scale", 0.5)`, `scale = config.get("scale") or 1.0`, `def decode(x, scale=0.5)`."""
    bound = bindings_of(function, name)
    if not bound:
        return any(argument == name and _is_number(default) for argument, default in _defaults(function))
    values = [one.value for one in ast.walk(function) if isinstance(one, ast.Assign) and one.targets == bound]
    return len(bound) == len(values) == 1 and any(_is_number(one) for one in _alternatives(values[0]))


def _defaults(function: Function) -> Iterator[tuple[str, ast.expr]]:
    given = function.args
    placed = [*given.posonlyargs, *given.args]
    for argument, default in zip(reversed(placed), reversed(given.defaults), strict=False):
        yield argument.arg, default
    for argument, named in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        if named is not None:
            yield argument.arg, named


def _alternatives(value: ast.expr) -> Iterator[ast.expr]:
    """What an expression may come to where something is missing."""
    match value:
        case ast.BoolOp(op=ast.Or(), values=values):
            yield from _alternatives(values[-1])
        case ast.IfExp(body=body, orelse=other):
            yield from _alternatives(body)
            yield from _alternatives(other)
        case ast.Call(func=ast.Name(id="getattr"), args=[_, _, default]) | ast.Call(func=ast.Attribute(attr="get"), args=[_, default]):
            yield from _alternatives(default)
        case _:
            yield value


def _is_number(node: ast.expr) -> bool:
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(inner, ast.Constant) and type(inner.value) in (int, float)
