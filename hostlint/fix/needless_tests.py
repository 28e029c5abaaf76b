"""Fixes of a test whether a mask has true elements, before a write that without them changes nothing."""
from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from hostlint.fix.gradients import gradients_are_off
from hostlint.fix.same_shape import elements_lie_apart, shape_of
from hostlint.fix.scalars import is_short
from hostlint.model import Applicability, Edit, Span

if TYPE_CHECKING:
    from hostlint.fix.place import Place
    from hostlint.model import Fix


MOST = 127


def without_test(place: Place) -> Fix | None:
    """`if m.any(): x[m] = 0.0` to `x[m] = 0.0`."""
    statement = place.statement
    if not isinstance(statement, ast.If) or statement.orelse or place.outline.span(statement.test) != place.fact.span:
        return None
    mask = _mask(place, statement.test)
    written = [_written(one, mask) for one in statement.body]
    if not mask or not all(written) or not _can_move(place, statement):
        return None
    edits = _dedented(place, statement)
    seen = all(shape_of(place, mask, name).covers and elements_lie_apart(place, name) for name in written)
    if seen and gradients_are_off(place) and all(_fits_all(one) for one in statement.body):
        return place.fix(Applicability.EXACT, "write without asking: where nothing is true, nothing is written", edits)
    assumed = f"{' and '.join(f'`{name}`' for name in dict.fromkeys(written))} may be written in place at any time"
    return place.fix(Applicability.REVIEW, f"write without asking: where nothing is true, nothing is written; where {assumed}", edits)


def _mask(place: Place, test: ast.expr) -> str:
    """The mask of `m.any()` or `torch.any(m)`; "" for other tests."""
    match test:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="any"), args=[mask], keywords=[]):
            return ast.unparse(mask) if place.outline.meaning(name, place.path) == "torch" else ""
        case ast.Call(func=ast.Attribute(value=mask, attr="any"), args=[], keywords=[]):
            return ast.unparse(mask)
    return ""


def _written(statement: ast.stmt, mask: str) -> str:
    """What a statement writes a number to through the mask; "" where it does anything else."""
    match statement:
        case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name), slice=index)], value=value) if ast.unparse(index) == mask:
            number = value.operand if isinstance(value, ast.UnaryOp) else value
            return name if isinstance(number, ast.Constant) and isinstance(number.value, int | float) else ""
    return ""


def _fits_all(statement: ast.stmt) -> bool:
    """Whether every dtype holds the number that is written: for another the write is an error, be anything true or not."""
    value = getattr(getattr(statement, "value", None), "value", None)
    return isinstance(value, int | float) and is_short(value) and 0 <= value <= MOST


def _can_move(place: Place, statement: ast.If) -> bool:
    """Whether the body stands on lines of its own, all of one margin, below a test of one line."""
    first, last = statement.body[0].lineno, statement.body[-1].end_lineno or 0
    margins = {place.outline.margin(line) for line in range(first, last + 1)}
    rest = place.outline.lines[statement.lineno - 1].partition(":")[2].strip()
    return place.outline.begins_line(statement) and first == statement.lineno + 1 and len(margins) == 1 and not rest


def _dedented(place: Place, statement: ast.If) -> list[Edit]:
    margin, inner = place.outline.margin(statement.lineno), place.outline.margin(statement.body[0].lineno)
    header = Edit(Span(statement.lineno, 1, statement.lineno + 1, len(inner) + 1), margin)
    lines = range(statement.body[0].lineno + 1, (statement.body[-1].end_lineno or 0) + 1)
    return [header, *(Edit(Span(line, 1, line, len(inner) + 1), margin) for line in lines)]
