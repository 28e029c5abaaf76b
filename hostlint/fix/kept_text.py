"""How a call of the function that keeps is written: the lambda with its parameters, and the lines that it takes."""
from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from hostlint.fix.loops import names_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostlint.fix.place import Place

LONGEST_LINE, LONGEST_PART = 120, 130  # a lambda alone may be a little longer
CONSTRUCTORS = frozenset({"tensor", "as_tensor"})
MADE = CONSTRUCTORS | {"arange", "linspace", "logspace", "zeros", "ones", "full", "eye"}
REDUCED = frozenset({"max", "min", "sum", "len", "int", "float", "round", "abs"})  # Python's own, which make numbers


def kept_call(place: Place, node: ast.expr, name: str, keys: Sequence[ast.expr]) -> str | None:
    """`kept(lambda n: torch.arange(n), n)`, on several lines where one has no room; None where that would be hard to read."""
    made, given = _lambda(place, node, keys)
    text = f"{name}(lambda{' ' + ', '.join(made[0]) if made[0] else ''}: {made[1]}{''.join(f', {one}' for one in given)})"
    if "\n" not in text and _line_with(place, node, text) <= LONGEST_LINE:
        return text
    text = _broken(place, node, name, made, given)
    return text if _begins(place, node) and max(map(len, text.split("\n"))) <= LONGEST_PART else None


def assumed_defaults(node: ast.expr) -> str:
    """What a kept tensor takes from outside of its key, as words after an assumption: ` and the default dtype stays`; "" for nothing."""
    missing = set()
    for call in ast.walk(node):
        match call:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr=name), args=given, keywords=keywords) if name in MADE:
                told = {one.arg for one in keywords}
                whole = _is_whole(given) and (name == "arange" or (name in CONSTRUCTORS and not names_in(*given)))
                missing |= {"dtype", *([] if name in CONSTRUCTORS else ["device"])} - told - ({"dtype"} if whole else set())
    words = " and ".join(sorted(missing))
    return f" and the default {words} {'stay' if len(missing) > 1 else 'stays'}" if missing else ""


def _is_whole(given: Sequence[ast.expr]) -> bool:
    """Whether no float is written in the arguments."""
    return not any(isinstance(one, ast.Constant) and isinstance(one.value, float) for argument in given for one in ast.walk(argument))


def _lambda(place: Place, node: ast.expr, keys: Sequence[ast.expr]) -> tuple[tuple[list[str], str], list[str]]:
    """The parameters and the body of the function that makes the constant, and what it is given."""
    outline, base = place.outline, place.outline.span(node)
    given: dict[str, str] = {}  # source -> parameter
    for one in keys:
        source = outline.source(outline.span(one))
        if source not in given:
            given[source] = _parameter(one, source, set(given.values()) | names_in(node) - names_in(*keys))
    body = outline.source(base)
    lines = body.split("\n")
    for one in sorted(keys, key=lambda key: (key.lineno, key.col_offset), reverse=True):
        span = outline.span(one)
        row, shift = span.line - base.line, base.column - 1 if span.line == base.line else 0
        line = lines[row]
        lines[row] = line[: span.column - 1 - shift] + given[outline.source(span)] + line[span.end_column - 1 - shift :]
    return (list(given.values()), "\n".join(lines)), list(given)


def _parameter(node: ast.expr, source: str, taken: set[str]) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            wanted = name.lstrip("_") or "value"
        case ast.Call(func=ast.Attribute(attr=name)):
            wanted = name
        case ast.Call(func=ast.Name(id=name)) if name in REDUCED - {"len"}:
            wanted = "number"
        case ast.Call():
            wanted = "length"
        case _:
            wanted = "size"
    number, name = 1, wanted
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    return name


def _line_with(place: Place, node: ast.expr, text: str) -> int:
    """How long the line gets with another text in a node's place; a comment at its end may hang over."""
    span = place.outline.span(node)
    rest = place.outline.lines[span.end_line - 1][span.end_column - 1 :].partition("  #")[0]
    return span.column - 1 + len(text) + len(rest)


def _begins(place: Place, node: ast.expr) -> bool:
    """Whether a node is what its line begins with, a target and a `return` aside."""
    value, span = getattr(place.statement, "value", None), place.outline.span(node)
    if isinstance(value, ast.expr):
        whole = place.outline.span(value)
        if (whole.line, whole.column) == (span.line, span.column):
            return True
    return not place.outline.lines[span.line - 1][: span.column - 1].strip()


def _broken(place: Place, node: ast.expr, name: str, made: tuple[list[str], str], given: list[str]) -> str:
    """The call with an argument a line."""
    margin = place.outline.margin(place.outline.span(node).line)
    inner = f"{margin}    "
    body = "\n".join(line if number == 0 else f"    {line}" for number, line in enumerate(made[1].split("\n")))
    parameters = f" {', '.join(made[0])}" if made[0] else ""
    last = f"\n{inner}{', '.join(given)}," if given else ""
    return f"{name}(\n{inner}lambda{parameters}: {body},{last}\n{margin})"
