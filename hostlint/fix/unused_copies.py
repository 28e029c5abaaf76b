"""A copy to the host that a function returns and nobody looks at: the tensor is returned where it lives."""
from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from hostlint.facts.chains import chain as called_chain
from hostlint.fix.hoist import expression
from hostlint.fix.loops import loads_of, shared_with_nested
from hostlint.fix.outline import FUNCTIONS
from hostlint.fix.schedule import source_of
from hostlint.model import Applicability

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hostlint.fix.place import Place
    from hostlint.model import Fix


def unused_copy(place: Place) -> Fix | None:
    """`return idx, counts.cpu()` to `return idx, counts`, where every call that is seen drops the second part."""
    node, statement = expression(place), place.statement
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr="cpu"), args=[], keywords=[]):
            pass
        case ast.Call(func=ast.Attribute(value=inner, attr="to"), args=[ast.Constant(value="cpu")], keywords=[]):
            pass
        case _:
            return None
    match statement:
        case ast.Return(value=ast.Tuple(elts=parts)) if node in parts:
            position = parts.index(node)
        case _:
            return None
    calls = list(_calls(place))
    if not calls or not all(call is not None and _is_dropped(place, call, position, len(parts)) for call in calls):
        return None
    message = "return it where it lives, where nobody calls this but those who drop it"
    return place.fix(Applicability.REVIEW, message, place.replace(source_of(place, inner)))


def _calls(place: Place) -> Iterator[ast.Call | None]:
    """The calls of the function, None for one that is not in this file, or not plain to see."""
    frame = place.known.frame
    if frame is None:
        return
    evaluator, fid = frame.evaluator, frame.fid
    for edge in evaluator.surroundings.callers(fid):
        call = evaluator.index.function(edge.caller).calls[edge.call_index] if edge.call_index >= 0 else None
        if call is None or not edge.certain or edge.caller[0] != fid[0]:
            yield None
            continue
        nodes = [one for one in ast.walk(place.outline.tree) if isinstance(one, ast.Call) and one.lineno == call.line]
        found = [one for one in nodes if called_chain(one.func) == call.chain]
        yield found[0] if len(found) == 1 else None


def _is_dropped(place: Place, call: ast.Call, position: int, parts: int) -> bool:
    """Whether the caller binds that part to a name that it never reads, picks another part, or wants nothing at all."""
    path = place.outline.around(place.outline.span(call))
    function = next((one for one in reversed(path) if isinstance(one, FUNCTIONS)), None)
    outer: Sequence[ast.AST] = path[: path.index(call)] if call in path else ()
    if not outer or not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    match outer[-1]:
        case ast.Expr():
            return True
        case ast.Assign(targets=[ast.Tuple(elts=names)]) if len(names) == parts:
            name = names[position]
            return isinstance(name, ast.Name) and not loads_of(function, name.id) and not shared_with_nested(function, name.id)
        case ast.Subscript(slice=ast.Constant(value=int(picked))):
            return picked % parts != position
    return False
