"""Fixes of a debug message that is put together although its level is off: the line goes behind the logger's own test."""
from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from hostlint.model import Applicability, Confidence, Edit, Span

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hostlint.fix.place import Place
    from hostlint.model import Fix

NUMERIC = re.compile(r"[-+ ]?\d*(\.\d+)?[efgEFG]")  # formats that every number takes
COUNTING = re.compile(r"[-+ ]?\d*d?")  # and those of integers


def guarded_debug_line(place: Place) -> Fix | None:
    """`log.debug(f"loss {loss}")` goes under `if log.isEnabledFor(logging.DEBUG):`."""
    statement = place.statement
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=(ast.Name() | ast.Attribute()) as logger, attr="debug")) as call):
            name = ast.unparse(logger)
        case _:
            return None
    level = place.spelled("logging.DEBUG")
    if level is None or name.count(".") > 1 or not _has_lines_of_its_own(place, statement):
        return None
    asked = f"{name}.getLogger()" if place.outline.meaning(name, place.path) == "logging" else name
    edits = (*_indented(place, statement, f"if {asked}.isEnabledFor({level.text}):"), *level.edits)
    if _is_logger(place, logger) and _only_reads(place, call):
        return place.fix(Applicability.EXACT, "build the text only where the level is on", edits)
    return place.fix(Applicability.REVIEW, "build the text only where the level is on, where building it does nothing else", edits)


def _has_lines_of_its_own(place: Place, statement: ast.stmt) -> bool:
    """Whether the statement can be indented: nothing else on its lines, and no string that goes over them."""
    span = place.outline.span(statement)
    source, rest = place.outline.source(span), place.outline.lines[span.end_line - 1][span.end_column - 1 :].strip()
    plain = not any(mark in source for mark in ('"""', "'''", "\\\n"))
    return place.outline.begins_line(statement) and plain and (not rest or rest.startswith("#"))


def _indented(place: Place, statement: ast.stmt, header: str) -> list[Edit]:
    margin = place.outline.margin(statement.lineno)
    unit = "\t" if "\t" in margin else "    "
    last = place.outline.span(statement).end_line
    first = Edit(Span(statement.lineno, 1, statement.lineno, 1), f"{margin}{header}\n{unit}")
    return [first, *(Edit(Span(line, 1, line, 1), unit) for line in range(statement.lineno + 1, last + 1))]


def _is_logger(place: Place, logger: ast.expr) -> bool:
    """Whether it is what the module bound to `logging.getLogger(...)`; `logging.debug` itself may set up the root logger first."""
    if not isinstance(logger, ast.Name):
        return False
    bound = [node for node in ast.walk(place.outline.tree) if isinstance(node, ast.Name) and node.id == logger.id]
    stores = [node for node in bound if not isinstance(node.ctx, ast.Load)]
    arguments = {node.arg for node in ast.walk(place.outline.tree) if isinstance(node, ast.arg)}
    for one in place.outline.tree.body:
        match one:
            case ast.Assign(targets=[target], value=ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr="getLogger"))):
                if stores == [target] and logger.id not in arguments and place.outline.meaning(module, ()) == "logging":
                    return True
    return False


def _only_reads(place: Place, call: ast.Call) -> bool:
    """Whether the message is one f-string of the device value, proved to be one number, of constants and of loop counters."""
    value = place.known.value
    if not (value.is_tensor and value.rank0 and value.confidence is Confidence.CERTAIN) or len(call.args) != 1 or call.keywords:
        return False
    parts = call.args[0].values if isinstance(call.args[0], ast.JoinedStr) else []
    known = {place.outline.source(place.fact.span): NUMERIC, **dict.fromkeys(_counters(place), COUNTING)}
    return bool(parts) and all(isinstance(part, ast.Constant) or _is_read(part, known) for part in parts)


def _is_read(part: ast.expr, known: Mapping[str, re.Pattern[str]]) -> bool:
    match part:
        case ast.FormattedValue(value=value, format_spec=None, conversion=-1):
            return ast.unparse(value) in known
        case ast.FormattedValue(value=value, format_spec=ast.JoinedStr(values=[ast.Constant(value=str() as spec)]), conversion=-1):
            wanted = known.get(ast.unparse(value))
            return wanted is not None and wanted.fullmatch(spec) is not None
    return False


def _counters(place: Place) -> Iterator[str]:
    """The names that the loops around bind to integers: `for k in range(n)`, `for k, x in enumerate(xs)`."""
    for loop in place.loops:
        match loop:
            case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"))):
                yield name
            case ast.For(target=ast.Tuple(elts=[ast.Name(id=name), *_]), iter=ast.Call(func=ast.Name(id="enumerate"))):
                yield name
