"""Reads whose number only a guard uses (`if step % 100 == 0: log(value)`): they go under that guard."""
from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from hostlint.fix.hoist import moved
from hostlint.fix.loops import bindings_of, chains_in, direct_loop, is_caught, loads_of, may_change, shared_with_nested
from hostlint.model import Applicability

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostlint.fix.place import Place
    from hostlint.fix.reads import Read
    from hostlint.model import Fix

READING = frozenset({"item", "detach", "mean", "sum", "float", "double", "cpu", "max", "min", "norm", "tolist"})
NUMBERS = frozenset({"float", "int", "round"})
PARTS = (
    ast.Name, ast.Attribute, ast.Constant, ast.Call, ast.BinOp, ast.UnaryOp, ast.Dict, ast.List, ast.Tuple, ast.Subscript, ast.expr_context,
    ast.operator, ast.unaryop,
)  # fmt: skip


def under_guard(place: Place, read: Read) -> Fix | None:
    """`value = loss.item()` above `if step % n == 0: log(value)` goes into the guard's body."""
    here = direct_loop(place)
    if here is None or here[1] is not place.statement or place.function is None:
        return None
    loop, statement = here
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if _only_reads(value):
            pass
        case _:
            return None
    after = loop.body[loop.body.index(statement) + 1 :]
    guard = next((one for one in after if loads_of(one, name)), None)
    if not isinstance(guard, ast.If) or len(bindings_of(place.function, name)) != 1 or shared_with_nested(place.function, name):
        return None
    inside = sum(len(loads_of(one, name)) for one in guard.body)
    if inside != len(loads_of(place.function, name)) or is_caught(place.path, place.path[-1]):
        return None
    between = after[: after.index(guard)]
    if may_change(place.function, ast.Module([*between, ast.Expr(guard.test)], []), chains_in(value)):
        return None
    edits = moved(place, statement, guard.body[0])
    if edits is None:
        return None
    source = place.outline.source(place.outline.span(read.tensor))
    if read.is_proved_scalar and _is_alone(value, read) and not _calls([*between, guard.test]):
        return place.fix(Applicability.EXACT, "read it where it is used: nothing between changes it", edits)
    return place.fix(Applicability.REVIEW, f"read it where it is used, where no call between writes into `{source}`", edits)


def _only_reads(value: ast.expr) -> bool:
    """Whether an expression reads numbers and does nothing else."""
    for node in ast.walk(value):
        if not isinstance(node, PARTS):
            return False
        match node:
            case ast.Call(func=ast.Attribute(attr=method), args=[]) if method in READING:
                pass
            case ast.Call(func=ast.Name(id=function)) if function in NUMBERS:
                pass
            case ast.Call():
                return False
    return True


def _is_alone(value: ast.expr, read: Read) -> bool:
    return value is read.node and isinstance(read.tensor, ast.Name)


def _calls(nodes: Sequence[ast.AST]) -> bool:
    """Whether anything is called, or may be: by attributes, operators and subscripts of objects that nobody knows."""
    plain = (ast.Assign, ast.Name, ast.Constant, ast.expr_context, ast.Expr, ast.Pass, ast.Compare, ast.BinOp, ast.operator, ast.cmpop)
    return any(not isinstance(part, plain) for node in nodes for part in ast.walk(node))
