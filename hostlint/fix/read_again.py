"""The same number read twice, with nothing between that changes it: it is read once, under a name."""
from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hostlint.fix.loops import LEAVING, bindings_of, chain, is_unconditional, may_change, shared_with_nested, siblings_before
from hostlint.fix.schedule import source_of
from hostlint.model import Applicability

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostlint.fix.place import Place
    from hostlint.fix.reads import Read
    from hostlint.model import Edit, Fix

HARMLESS = (
    ast.Name, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.expr_context, ast.cmpop, ast.boolop, ast.unaryop, ast.Assign, ast.If,
    ast.Pass, ast.Expr,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Earlier:
    """A read of the same number before this one, the statement that always reads it, and what runs from there to this one."""

    node: ast.expr
    statement: ast.stmt
    run: tuple[ast.AST, ...]


def read_again(place: Place, read: Read) -> Fix | None:
    """`if t.item() == a: break` and then `if t.item() == b:` to `t_item = t.item()` and two tests of it."""
    function, name = place.function, chain(read.tensor)
    if function is None or not isinstance(read.tensor, ast.Name | ast.Attribute) or shared_with_nested(function, name.partition(".")[0]):
        return None
    earlier = _earlier(place, read)
    if not name or earlier is None or may_change(function, ast.Module(list(earlier.run), []), frozenset({name})):  # type: ignore[arg-type]
        return None
    match earlier.statement:
        case ast.Assign(targets=[ast.Name(id=kept)], value=value) if value is earlier.node:
            if len(bindings_of(function, kept)) != 1 or shared_with_nested(function, kept):
                return None
            edits: list[Edit] = [place.replace(kept)]
        case _:
            kept = place.fresh(f"{name.replace('.', '_')}_{read.how}")
            added = place.before(earlier.statement, f"{kept} = {source_of(place, read.node)}")
            if added is None:
                return None
            edits = [added, place.replace(kept, earlier.node), place.replace(kept)]
    if read.is_proved_scalar and isinstance(read.tensor, ast.Name) and all(_is_harmless(one, read) for one in earlier.run):
        return place.fix(Applicability.EXACT, "read it once: nothing between changes it", edits)
    return place.fix(Applicability.REVIEW, f"read it once, where no call between writes into `{name}`", edits)


def _earlier(place: Place, read: Read) -> _Earlier | None:
    """The nearest read of the same number, in the statement itself or in those before it in its block."""
    statement = place.statement
    if statement is None or not any(one is read.node for part in _header(statement) for one in ast.walk(part)):
        return None
    run: list[ast.AST] = _header(statement)
    for one in (statement, *siblings_before(place.path, statement)):
        if one is not statement:
            run += _effects(one)
        for node in _reads(one, read):
            path = place.outline.around(place.outline.span(node))
            if path[-1] is node and is_unconditional(path, one):
                return _Earlier(node, one, tuple(run))
    return None


def _header(statement: ast.stmt) -> list[ast.AST]:
    """What a statement works out before it does anything else."""
    match statement:
        case ast.If(test=part) | ast.Assert(test=part):
            return [part]
        case ast.Assign(value=part) | ast.Expr(value=part) | ast.AugAssign(value=part):
            return [part]
        case ast.Return(value=ast.expr() as part) | ast.AnnAssign(value=ast.expr() as part):
            return [part]
    return []


def _effects(statement: ast.stmt) -> list[ast.AST]:
    """What a statement may have done by the time that the next one runs: a body that leaves was not the way."""
    match statement:
        case ast.If(test=test, body=[*_, last], orelse=other) if isinstance(last, LEAVING) and not isinstance(last, ast.Assert):
            return [test, *other]
    return [statement]


def _reads(statement: ast.stmt, read: Read) -> Sequence[ast.expr]:
    """The reads of the same number in a statement's header that come before this one."""
    wanted, here = ast.dump(read.node), (read.node.lineno, read.node.col_offset)
    found = [one for part in _header(statement) for one in ast.walk(part) if isinstance(one, ast.expr) and ast.dump(one) == wanted]
    return sorted((one for one in found if (one.lineno, one.col_offset) < here), key=lambda one: (one.lineno, one.col_offset))


def _is_harmless(node: ast.AST, read: Read) -> bool:
    """Whether all that runs compares and names numbers, this one among them."""
    wanted = ast.dump(read.node)
    if ast.dump(node) == wanted:
        return True
    return isinstance(node, HARMLESS) and all(_is_harmless(one, read) for one in ast.iter_child_nodes(node))
