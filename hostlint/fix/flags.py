"""Checks in a loop that raise where a value went bad: the flags are combined on the device, and the check comes once after the loop."""
from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from hostlint.fix.loops import bound_in, direct_loop, is_caught, leaves_function, names_in
from hostlint.fix.reads import operand_source
from hostlint.model import Applicability, Edit, Span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostlint.fix.place import Place
    from hostlint.model import Fix

TESTS = frozenset({"isnan", "isinf", "isfinite"})
NAMES = {"isnan": "has_nan", "isinf": "has_inf", "isfinite": "not_finite"}


def checked_after(place: Place) -> Fix | None:
    """`if torch.isnan(loss): raise …` to `has_nan |= torch.isnan(loss)`, and the check after the loop."""
    here = direct_loop(place)
    if here is None or here[1] is not place.statement or place.function is None:
        return None
    loop, statement = here
    parts = _parts(place, statement)
    if parts is None or loop.orelse or leaves_function(loop) or is_caught(place.path, loop) or isinstance(loop, ast.AsyncFor):
        return None
    test, flag, raised = parts
    if bound_in(loop) & names_in(*raised):
        return None  # what the message says of a pass is gone after the loop
    name = place.fresh(next((NAMES[one] for one in _tests(test)), "failed"))
    started, ended = place.before(loop, f"{name} = False"), place.after(loop, _check(place, statement, name))
    if started is None or ended is None or not place.outline.begins_line(statement):
        return None
    own = place.outline.span(statement)
    replaced = Edit(Span(own.line, own.column, own.end_line, own.end_column), f"{name} |= {flag}")
    assumed = "it may fail late: the rest of the loop has run on the bad values by then"
    message = f"combine the flags on the device and look once after the loop, where {assumed}"
    return place.fix(Applicability.REVIEW, message, replaced, started, ended)


def _parts(place: Place, statement: ast.stmt) -> tuple[ast.expr, str, Sequence[ast.AST]] | None:
    """The test, its flag on the device, and what is raised where that is set."""
    raised: list[ast.AST] = []
    match statement:
        case ast.Assert(test=test, msg=message):
            flag = _flag(place, test, negated=True)
            raised += [message] if message is not None else []
        case ast.If(test=test, body=[ast.Raise() as error], orelse=[]):
            flag = _flag(place, test, negated=False)
            raised.append(error)
        case _:
            return None
    return (test, flag, raised) if flag else None


def _flag(place: Place, test: ast.expr, negated: bool) -> str:
    """A test as a boolean tensor, in source; "" where it is not made of tests for bad numbers alone."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return _flag(place, inner, not negated)
        case ast.BoolOp(op=operator, values=values):
            parts = [_flag(place, one, negated) for one in values]
            sign = " | " if isinstance(operator, ast.Or) is not negated else " & "
            return f"({sign.join(parts)})" if all(parts) else ""
        case ast.Call(func=ast.Name(id="bool"), args=[inner], keywords=[]):
            return _flag(place, inner, negated)
        case ast.Call(func=ast.Attribute(value=inner, attr="item"), args=[], keywords=[]):
            return _flag(place, inner, negated)
    source = _tensor(place, test)
    return f"~{source}" if source and negated else source


def _tensor(place: Place, test: ast.expr) -> str:
    """A test for bad numbers in source: `torch.isnan(x)`, `x.isfinite().all()`, `math.isnan(x)`."""
    match test:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="math"), attr=name), args=[value], keywords=[]) if name in TESTS:
            spelled = place.spelled(f"torch.{name}")
            source = place.outline.source(place.outline.span(value))
            return f"{spelled.text}({source})" if spelled is not None and not spelled.edits else ""
        case ast.Call(func=ast.Attribute(attr="any" | "all")):
            return operand_source(place, test) if _tests(test) else ""
        case ast.Call(func=ast.Attribute(attr=name)) if name in TESTS:
            return operand_source(place, test)
    return ""


def _tests(test: ast.AST) -> list[str]:
    return [one.attr for one in ast.walk(test) if isinstance(one, ast.Attribute) and one.attr in TESTS]


def _check(place: Place, statement: ast.stmt, name: str) -> str:
    """The check as it stands after the loop."""
    source = place.outline.source
    match statement:
        case ast.Assert(msg=message):
            told = f", {source(place.outline.span(message))}" if message is not None else ""
            return f"assert not {name}{told}"
        case ast.If(body=[error]):
            margin, inner = place.outline.margin(statement.lineno), place.outline.margin(error.lineno)
            step = inner.removeprefix(margin) if error.lineno != statement.lineno else "    "
            lines = source(place.outline.span(error)).split("\n")
            return "\n".join([f"if {name}:", f"{step}{lines[0]}", *(line.removeprefix(margin) for line in lines[1:])])
    return ""
