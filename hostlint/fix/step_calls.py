"""The calls of a function in the step loops of its file: what each passes, and the loop around it that leaves that alone."""
from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from hostlint.facts.chains import chain as called_chain
from hostlint.fix.loops import Function, chain, may_change
from hostlint.fix.outline import FUNCTIONS, LOOPS
from hostlint.values.constancy import HANDS_ON

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hostlint.fix.outline import Loop
    from hostlint.fix.place import Place
    from hostlint.index import FunctionId
    from hostlint.values.evaluator import Caller, Evaluator

MANY_CALLS = 8


@dataclass(frozen=True, slots=True)
class StepCall:
    """A call of the function in a step loop: what it passes for the parameters, and the loop that leaves that alone."""

    node: ast.Call
    passed: tuple[ast.expr, ...]
    loop: Loop
    function: Function


def calls_in_steps(place: Place, parameters: Sequence[str]) -> Sequence[StepCall] | None:
    """The calls on a step's path; None where one of them is not in this file, or does not say what it passes in a loop of its own."""
    frame = place.known.frame
    if frame is None:
        return None
    evaluator, fid = frame.evaluator, frame.fid
    hot = [edge for edge in evaluator.surroundings.callers(fid) if _is_hot(evaluator, edge)]
    if not hot or len(hot) > MANY_CALLS or any(not edge.certain or edge.caller[0] != fid[0] or edge.caller == fid for edge in hot):
        return None
    positions = {one: _position(evaluator, fid, one) for one in parameters}
    calls = [evaluator.index.function(edge.caller).calls[edge.call_index] for edge in hot]
    found = []
    for (line, called), number in Counter((call.line, call.chain) for call in calls).items():
        nodes = _nodes(place, line, called)
        steps = [step for node in nodes if (step := _call(place, node, positions)) is not None]
        if len(steps) != number or len(nodes) != number or HANDS_ON.search(called):  # a checkpoint passes on what stands elsewhere
            return None
        found += steps
    return found


def _is_hot(evaluator: Evaluator, edge: Caller) -> bool:
    region = evaluator.index.function(edge.caller).calls[edge.call_index].region
    return evaluator.surroundings.is_hot(edge.caller, region)


def _position(evaluator: Evaluator, fid: FunctionId, parameter: str) -> int:
    """Where a call gives the parameter if not by name; a negative number where only the name does."""
    outline = evaluator.index.function(fid)
    number = next(number for number, one in enumerate(outline.params) if one.name == parameter)
    return number - int(outline.owner >= 0) if outline.params[number].kind == "positional" else -1


def _nodes(place: Place, line: int, called: str) -> Sequence[ast.Call]:
    """The calls of a line in Python's own tree."""
    nodes = [one for one in ast.walk(place.outline.tree) if isinstance(one, ast.Call) and one.lineno == line]
    return [one for one in nodes if called_chain(one.func) == called]


def _call(place: Place, node: ast.Call, positions: Mapping[str, int]) -> StepCall | None:
    passed = [_argument(node, name, position) for name, position in positions.items()]
    kept = tuple(one for one in passed if one is not None)
    chains = frozenset(chain(one) for one in kept if not isinstance(one, ast.Constant))
    if len(kept) != len(passed) or not chains or "" in chains:
        return None
    path = place.outline.around(place.outline.span(node))
    number = max((number for number, one in enumerate(path) if isinstance(one, (*FUNCTIONS, ast.ClassDef))), default=-1)
    function = path[number] if number >= 0 else None
    if not isinstance(function, Function):
        return None
    loops = [one for one in _loops(path[number:]) if not may_change(function, one, chains)]
    return StepCall(node, kept, loops[0], function) if loops else None


def _argument(node: ast.Call, name: str, position: int) -> ast.expr | None:
    """A name, an attribute or a constant that a call passes; None for anything else, or where that is not plain to see."""
    if any(isinstance(one, ast.Starred) for one in node.args) or any(one.arg is None for one in node.keywords):
        return None
    named = next((one.value for one in node.keywords if one.arg == name), None)
    passed = named if named is not None else node.args[position] if 0 <= position < len(node.args) else None
    return passed if isinstance(passed, ast.Name | ast.Attribute | ast.Constant) else None


def _loops(path: Sequence[ast.AST]) -> Iterator[Loop]:
    """The loops in whose bodies the last node stands, outermost first."""
    for outer, inner in pairwise(path):
        if isinstance(outer, LOOPS) and inner in outer.body:
            yield outer
