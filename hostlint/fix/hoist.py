"""Work of a loop that goes before it: a whole assignment, or one expression under a name of its own."""
from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

from hostlint.fix.gradients import gradients_are_off
from hostlint.fix.loops import (
    LEAVING,
    bindings_of,
    bound_in,
    chains_in,
    is_unconditional,
    loads_of,
    may_change,
    names_in,
    own,
    shared_with_nested,
    touches,
    written_in,
)
from hostlint.model import Applicability, Edit, Span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostlint.fix.loops import Function
    from hostlint.fix.outline import Loop
    from hostlint.fix.place import Place
    from hostlint.model import Fix

LONGEST_NAME = 30
LONGEST_LINE = 120
STRUCTURE = (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
WHOLE = frozenset({"bool", "long", "int", "short"})  # no gradient runs through these
CASTS = WHOLE | {"float", "double", "half", "bfloat16"}
PLAIN = frozenset({"torch", "self", "F", "functional", "nn", "math", "os", "environ", "device", "dtype", "shape", "get", "getenv"})


def expression(place: Place) -> ast.expr | None:
    """The fact's expression in Python's own tree."""
    found = place.path[-1]
    return found if isinstance(found, ast.expr) and place.outline.span(found) == place.fact.span else None


def hoisted(place: Place, line: int) -> Fix | None:
    """The fact's expression before the loop at this line; None where the loop may change what it is made of, or may skip it."""
    edits = hoist_edits(place, line)
    if edits is None:
        return None
    if applicability(place) is Applicability.EXACT:
        reason = "nothing can change what it is made of, or write into it"
        return place.fix(Applicability.EXACT, f"compute it once before the loop: {reason}", edits)
    assumed = "the loop runs, and no call in it writes into what it is made of, or into the one result that all passes share"
    return place.fix(Applicability.REVIEW, f"compute it once before the loop, where {assumed}", edits)


def hoist_edits(place: Place, line: int) -> Sequence[Edit] | None:
    loop = next((one for one in place.loops if one.lineno == line), None)
    node, function = expression(place), place.function
    statement = next((one for one in loop.body if one in place.path), None) if loop is not None else None
    if loop is None or node is None or function is None or statement is None:
        return None
    if any(isinstance(one, STRUCTURE) for one in ast.walk(node)) or not is_unconditional(place.path, statement):
        return None
    if may_change(function, loop, chains_in(node)) or _may_be_skipped(loop, statement, names_in(node)):
        return None
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            if value is node and _is_only_here(function, loop, statement, name):
                return _whole(place, loop, statement)
    made = bound_in(statement)
    if any(touches(one, other) for one in made for other in written_in(*(other for other in loop.body if other is not statement))):
        return None
    return _named(place, loop, node)


def _may_be_skipped(loop: Loop, statement: ast.stmt, names: frozenset[str]) -> bool:
    """Whether what runs before the statement in a pass tests what the work is made of: `if mask is None: continue`."""
    tests: list[ast.AST] = [loop.test] if isinstance(loop, ast.While) else []
    earlier = loop.body[: loop.body.index(statement)]
    tests += [one for one in earlier if any(isinstance(node, LEAVING) for node in own(one))]
    return bool(names & names_in(*tests))


def _is_only_here(function: Function, loop: Loop, statement: ast.stmt, name: str) -> bool:
    """Whether the name is bound by this statement alone, is read after it in the same pass only, and is never written to."""
    if len(bindings_of(function, name)) != 1 or name in {one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)}:
        return False
    if shared_with_nested(function, name) or any(touches(name, one) for one in written_in(loop)):
        return False
    after = loop.body[loop.body.index(statement) + 1 :]
    return len(loads_of(function, name)) == sum(len(loads_of(one, name)) for one in after)


def _whole(place: Place, loop: Loop, statement: ast.stmt) -> Sequence[Edit] | None:
    return moved(place, statement, loop) if len(loop.body) > 1 else None


def moved(place: Place, statement: ast.stmt, before: ast.stmt) -> Sequence[Edit] | None:
    """A statement goes before another one as it is, with the comments that stand right above it; None where it shares its lines."""
    outline = place.outline
    span = outline.span(statement)
    rest = outline.lines[span.end_line - 1][span.end_column - 1 :].strip()
    if not outline.begins_line(statement) or (rest and not rest.startswith("#")):
        return None
    if any(isinstance(one, ast.Constant | ast.JoinedStr) and one.lineno != one.end_lineno for one in ast.walk(statement)):
        return None  # a string of several lines would be changed by its new margin
    margin = outline.margin(span.line)
    first = span.line
    while first > 1 and outline.lines[first - 2].startswith(f"{margin}#"):
        first -= 1
    lines = outline.lines[first - 1 : span.end_line]
    added = place.before(before, "\n".join(line.removeprefix(margin) for line in lines))
    return [added, Edit(Span(first, 1, span.end_line + 1, 1), "")] if added is not None else None


def _named(place: Place, loop: Loop, node: ast.expr) -> Sequence[Edit] | None:
    """The expression gets a name before the loop, and the name stands in its place."""
    source = place.outline.source(place.fact.span)
    name = place.fresh(name_for(node))
    if "\n" in source or len(source) + len(name) + len(place.outline.margin(loop.lineno)) + 3 > LONGEST_LINE:
        return None
    added = place.before(loop, f"{name} = {source}")
    return [added, place.replace(name)] if added is not None else None


def name_for(node: ast.expr) -> str:
    """A name that says what an expression computes: `mask_float` for `mask.float()`, `text_norm` for `self.text_norm(text)`."""
    words: list[str] = []
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr=method), args=arguments):
            given = [*arguments[:1]] if _last(value) in PLAIN else [value]
            words = [*(_last(one) for one in given), _cast(arguments[0]) if method == "to" and arguments else method]
        case ast.Call(func=ast.Name(id=function), args=arguments):
            words = [*(_last(one) for one in arguments[:1]), function]
        case _:
            words = [_last(node)]
    text = "_".join(dict.fromkeys(word for word in words if word and word not in PLAIN))
    return re.sub(r"\W+", "_", text).strip("_").lower()[:LONGEST_NAME].strip("_") or "kept"


def _cast(dtype: ast.expr) -> str:
    word = _last(dtype)
    return "cast" if word in PLAIN or word.endswith("dtype") else word


def _last(node: ast.AST) -> str:
    """The word that an expression is best known by."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=function):
            return _last(function)
        case ast.Subscript(value=value) | ast.UnaryOp(operand=value) | ast.BinOp(left=value) | ast.Starred(value=value):
            return _last(value)
        case ast.List(elts=[first, *_]) | ast.Tuple(elts=[first, *_]):
            return _last(first)
        case ast.Constant(value=str(text)) if text.isidentifier():
            return text
    return ""


def applicability(place: Place) -> Applicability:
    """Exact for a cast, which cannot fail, of a tensor that nothing but harmless operations see, to what they alone see either."""
    from hostlint.facts.graph import Op
    from hostlint.fix.apart import Apart, gives_nothing_away

    node, known = expression(place), place.known
    if known.frame is None or place.function is None or not gives_nothing_away(place.function):
        return Applicability.REVIEW
    match node:
        case ast.Call(func=ast.Attribute(attr=method), args=[], keywords=[]) if method in CASTS:
            pass
        case _:
            return Applicability.REVIEW
    item: Any = known.frame.graph.nodes[known.node]
    source = known.frame.graph.nodes[item[2]][2] if item[0] == Op.CALL else -1
    apart = Apart(known)
    proved = source >= 0 and apart.is_made_here(source) and apart.is_kept(source) and apart.is_kept(known.node)
    without_gradient = method in WHOLE or gradients_are_off(place)
    return Applicability.EXACT if proved and without_gradient else Applicability.REVIEW
