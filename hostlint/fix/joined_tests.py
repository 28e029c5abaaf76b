"""Two tests of device values in one condition: joined on the device, and read together."""
from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from hostlint.fix.entry_windows import truth_only
from hostlint.fix.hoist import STRUCTURE, expression
from hostlint.fix.schedule import source_of
from hostlint.model import Applicability, Span

if TYPE_CHECKING:
    from hostlint.fix.place import Place
    from hostlint.model import Edit, Fix

TESTS = frozenset({"isnan", "isinf", "isfinite", "any", "all", "eq", "ne", "lt", "le", "gt", "ge"})
SIZES = frozenset({"shape", "ndim", "dim", "size", "numel", "dtype", "device"})
JOINED = {ast.Or: "|", ast.And: "&"}


def joined_test(place: Place) -> Fix | None:
    """`if torch.isnan(t) or torch.isinf(t):` to `if torch.isnan(t) | torch.isinf(t):`."""
    node, outer = expression(place), place.path[-2] if len(place.path) > 1 else None
    if node is None or not isinstance(outer, ast.BoolOp) or node not in outer.values[1:] or not place.known.value.boolean:
        return None
    before = outer.values[outer.values.index(node) - 1]
    if not all(_is_test(one) for one in (before, node)) or not _same_tensor(before, node) or not truth_only(place, outer):
        return None
    left, right = place.outline.span(before), place.outline.span(node)
    between = Span(left.end_line, left.end_column, right.line, right.column)
    if left.end_line != right.line or place.outline.source(between).strip() not in ("or", "and"):
        return None
    compared = [one for one in (before, node) if isinstance(one, ast.Compare)]
    edits: list[Edit] = [place.replace(f" {JOINED[type(outer.op)]} ", between)]
    edits += [place.replace(f"({source_of(place, one)})", one) for one in compared]
    message = "ask once for both, where each is one truth value on the device (the second is worked out in any case then)"
    return place.fix(Applicability.REVIEW, message, edits)


def _is_test(node: ast.expr) -> bool:
    """Whether an expression tests a tensor and nothing but its values: a size that is asked first guards the second test."""
    for one in ast.walk(node):
        if isinstance(one, (*STRUCTURE, ast.Subscript)) or (isinstance(one, ast.Attribute) and one.attr in SIZES):
            return False
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Name):
            return False
    match node:
        case ast.Compare(ops=[ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE() | ast.Eq() | ast.NotEq()]):
            return True
        case ast.Call(func=ast.Attribute(attr=name), keywords=[]):
            return name in TESTS
    return False


def _same_tensor(one: ast.expr, other: ast.expr) -> bool:
    """Whether both tests are about the same names, numbers and modules aside: then what the first finds on the device the second does."""
    names = [{part.id for part in ast.walk(node) if isinstance(part, ast.Name)} - {"torch"} for node in (one, other)]
    return bool(names[0] & names[1])
