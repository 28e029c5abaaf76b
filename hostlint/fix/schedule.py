"""Reads of a schedule's steps, one in each pass: all steps are read once before the loop, or compared there and the answers read once."""
from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hostlint.fix.apart import Apart, gives_nothing_away
from hostlint.fix.loops import (
    bindings_of,
    bound_in,
    chain,
    is_spelled_as_number,
    may_change,
    names_in,
    shared_with_nested,
    siblings_before,
    touches,
    written_in,
)
from hostlint.model import Applicability, Confidence, Edit, Span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hostlint.fix.outline import Loop
    from hostlint.fix.place import Place
    from hostlint.fix.reads import Read
    from hostlint.model import Fix

BARS = re.compile(r"tqdm|progress|track|^bar$", re.IGNORECASE)  # what shows how far a loop is, and hands its elements on
QUESTIONS = frozenset({"is_tensor", "isinstance", "hasattr"})
LONGEST_HEADER = 110
HARMLESS = frozenset({"float", "int", "bool", "round", "abs", "len", "str"})


@dataclass(frozen=True, slots=True)
class Walk:
    """A loop that walks over a schedule: its element's name, the schedule, and the counter that `enumerate` gives ("" for none)."""

    loop: ast.For
    name: str
    schedule: ast.expr
    counter: str = ""


def read_before(place: Place, read: Read) -> Fix | None:
    match read.tensor:
        case ast.Name(id=name):
            return _ticks(place, read, name)
        case ast.Subscript(value=ast.Name() | ast.Attribute() as table, slice=index):
            return _entries(place, read, table, index)
    return None


# The elements that the loop walks over


def _ticks(place: Place, read: Read, name: str) -> Fix | None:
    """`for t in ticks: … t.item()` to `for t, t_value in zip(ticks, ticks.tolist()): … t_value`."""
    walk = walk_of(place, name)
    if walk is None:
        return None
    source = source_of(place, walk.schedule)
    entry = listed(place, walk, f"{source}.tolist()", f"{word_of(walk.schedule)}_values", f"{name}_value")
    if entry is None:
        return None
    value, edits = entry
    assumed = assumed_of(place, walk)
    if not read.value.rank0 or read.value.confidence is not Confidence.CERTAIN:
        assumed.insert(0, f"`{source}` is a 1-D tensor")
    return said(place, "read all steps once before the loop", assumed, place.replace(as_read(read, value)), edits)


def walk_of(place: Place, name: str) -> Walk | None:
    """The loop around the place whose element has this name, where that is a part of a schedule and stays what it is."""
    for loop in place.loops:
        if name in names_in(getattr(loop, "target", ast.Pass())):
            found = walked_by(loop.target, loop.iter, name) if isinstance(loop, ast.For) else None
            if found is None or not isinstance(loop, ast.For) or place.function is None or shared_with_nested(place.function, name):
                return None
            schedule, counter = found
            changed = {name, chain(schedule)}
            if is_asked(place.function, changed):
                return None
            if len(bindings_of(loop, name)) != 1 or any(touches(one, other) for one in changed for other in written_in(loop)):
                return None
            if counter and (len(bindings_of(loop, counter)) != 1 or counter in written_in(loop)):
                counter = ""
            return Walk(loop, name, schedule, counter)
        if bindings_of(loop, name):
            return None
    return None


def is_asked(function: ast.AST, names: set[str]) -> bool:
    """Whether the function asks if one of these is a tensor: then it may be none."""
    asked = [one for one in ast.walk(function) if isinstance(one, ast.Call) and chain(one.func).rpartition(".")[2] in QUESTIONS]
    return any(chain(argument) in names for one in asked for argument in one.args[:1])


def walked_by(target: ast.expr, walked: ast.expr, name: str) -> tuple[ast.expr, str] | None:
    """What the name is an element of, and the counter that goes with it."""
    match target, walked:
        case ast.Name(id=same), ast.Name() | ast.Attribute() if same == name:
            return walked, ""
        case ast.Name(id=same), ast.Call(args=[ast.Name() | ast.Attribute() as inner, *_]) if same == name and BARS.search(word_of(walked)):
            return inner, ""
        case ast.Tuple(elts=[ast.Name(id=counter), inner_target]), ast.Call(func=ast.Name(id="enumerate"), args=[inner], keywords=[]):
            found = walked_by(inner_target, inner, name)
            return (found[0], counter) if found is not None else None
        case ast.Tuple(elts=parts), ast.Call(func=ast.Name(id="zip"), args=given) if len(parts) == len(given):
            found_in = (walked_by(one, other, name) for one, other in zip(parts, given, strict=True))
            return next((one for one in found_in if one is not None), None)
    return None


def listed(place: Place, walk: Walk, made_by: str, table: str, element: str) -> tuple[str, Sequence[Edit]] | None:
    """How a pass says its own entry of a list that is made once, and the edits that make the list."""
    if walk.counter:
        made = table_before(place, walk.loop, made_by, table)
        return (f"{made[0]}[{walk.counter}]", made[1]) if made is not None else None
    target, walked = walk.loop.target, walk.loop.iter
    zipped = isinstance(walked, ast.Call) and isinstance(walked.func, ast.Name) and walked.func.id == "zip" and not walked.keywords
    if isinstance(target, ast.Tuple) and isinstance(walked, ast.Call):
        if not zipped:
            return None
        for one, given in zip(target.elts, walked.args, strict=False):
            if isinstance(one, ast.Name) and source_of(place, given) == made_by and len(bindings_of(walk.loop, one.id)) == 1:
                return one.id, ()
    name = place.fresh(element)
    made = _in_header(place, walk.loop, made_by, f", {name}", table)
    if made is None:
        return None
    last, edits = made
    if isinstance(target, ast.Tuple) and isinstance(walked, ast.Call):
        return name, [insertion(place, target.elts[-1], f", {name}"), insertion(place, walked.args[-1], f", {last}"), *edits]
    begin = place.outline.span(walked)
    first = Edit(Span(begin.line, begin.column, begin.line, begin.column), "zip(")
    return name, [insertion(place, target, f", {name}"), first, insertion(place, walked, f", {last})"), *edits]


def _in_header(place: Place, loop: ast.For, made_by: str, more: str, table: str) -> tuple[str, Sequence[Edit]] | None:
    """A list as one more argument of the header's `zip`: as it is made where the line has room for it, else by a name of its own."""
    line = place.outline.lines[loop.iter.end_lineno - 1] if loop.iter.end_lineno else ""
    if len(line) + len(f"{more}zip(, {made_by})") <= LONGEST_HEADER:
        return made_by, ()
    return table_before(place, loop, made_by, table)


def table_before(place: Place, loop: ast.stmt, made_by: str, wanted: str) -> tuple[str, Sequence[Edit]] | None:
    """The name of a list that is made before a loop: one that is there, else a new one."""
    read = names_in(ast.parse(made_by))
    for statement in siblings_before(place.path, loop):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if source_of(place, value) == made_by and not bindings_of(loop, name):
                return name, ()
        if not isinstance(statement, ast.Assign) or bound_in(statement) & read or written_in(statement):
            break
    name = place.fresh(wanted)
    added = place.before(loop, f"{name} = {made_by}")
    return (name, [added]) if added is not None else None


def insertion(place: Place, node: ast.AST, text: str) -> Edit:
    end = place.outline.span(node)
    return Edit(Span(end.end_line, end.end_column, end.end_line, end.end_column), text)


# Entries of a table


def _entries(place: Place, read: Read, table: ast.Name | ast.Attribute, index: ast.expr) -> Fix | None:
    """`sigmas[i].item()` to `sigmas_values[i]`, where `sigmas_values = sigmas.tolist()` stands before the loop."""
    function, name = place.function, chain(table)
    if function is None or not name or not is_spelled_as_number(index) or is_tested(function, name):
        return None
    loop = next((one for one in reversed(place.loops) if not may_change(function, one, frozenset({name}))), None)
    if loop is None or not names_in(index) & {one for outer in place.loops for one in _targets(outer)}:
        return None
    made = table_before(place, loop, f"{name}.tolist()", f"{word_of(table)}_values")
    if made is None:
        return None
    assumed = []
    if not read.is_proved_scalar:
        assumed.append(f"`{name}` is a 1-D tensor")
    if not is_count(place, index):
        assumed.append(f"`{source_of(place, index)}` is a Python int")
    if not is_kept(place, table):
        assumed.append(f"nothing writes into `{name}` during the loop")
    new = as_read(read, f"{made[0]}[{source_of(place, index)}]")
    return said(place, "read the whole table once before the loop", assumed, place.replace(new), made[1])


def _targets(loop: Loop) -> frozenset[str]:
    return names_in(loop.target) if isinstance(loop, ast.For) else frozenset()


def is_tested(function: ast.AST, name: str) -> bool:
    """Whether the function asks if it is None: then it may be, before the loop."""
    for node in ast.walk(function):
        match node:
            case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot()]) if chain(left) == name:
                return True
            case ast.If(test=test) | ast.IfExp(test=test) if chain(test) == name:
                return True
    return False


def is_count(place: Place, index: ast.expr) -> bool:
    """Whether an index is a loop's counter, plus or minus a number."""
    match index:
        case ast.Constant(value=int()):
            return True
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            return is_count(place, left) and is_count(place, right)
        case ast.Name(id=name):
            return any(name == one for loop in place.loops for one in _counters(loop) if len(bindings_of(loop, name)) == 1)
    return False


def _counters(loop: Loop) -> Iterator[str]:
    match loop:
        case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"))):
            yield name
        case ast.For(target=ast.Tuple(elts=[ast.Name(id=name), _]), iter=ast.Call(func=ast.Name(id="enumerate"))):
            yield name


# What is proved


def assumed_of(place: Place, walk: Walk) -> list[str]:
    if is_vector(place, walk, apart=True) and not _is_handed_on(place, walk):
        return []
    return [f"nothing writes into `{source_of(place, walk.schedule)}` during the loop"]


def is_vector(place: Place, walk: Walk, apart: bool = False) -> bool:
    """Whether the schedule is proved to be a tensor; `apart`: one that only this function sees, elements aside."""
    frame, function = place.known.frame, place.function
    if frame is None or function is None:
        return False
    graph, known = frame.graph, Apart(place.known, elements=True)
    sources = {known.iterated(node) for node in range(len(graph.nodes)) if graph.nodes[node][1] == walk.loop.lineno} - {-1}
    if not sources:
        return False
    if apart:
        return gives_nothing_away(function) and all(known.is_made_here(one) and known.is_kept(one) for one in sources)
    values = [frame.value(one) for one in sources]
    return all(one.is_tensor and one.vector and one.confidence is Confidence.CERTAIN for one in values)


def is_kept(place: Place, table: ast.Name | ast.Attribute) -> bool:
    """Whether a table is made by this function and nothing else sees it, or a part of it."""
    frame, function = place.known.frame, place.function
    if frame is None or function is None or not isinstance(table, ast.Name) or len(bindings_of(function, table.id)) != 1:
        return False
    cell = next((node for name, node in frame.graph.cells if name == table.id), -1)
    if cell < 0 or not gives_nothing_away(function):
        return False
    item = frame.graph.nodes[cell]
    sources: Sequence[int] = item[2] if item[0] == 12 else (cell,)  # type: ignore[assignment]
    apart = Apart(place.known)
    return all(apart.is_made_here(one) and apart.is_kept(one) for one in sources)


def _is_handed_on(place: Place, walk: Walk) -> bool:
    """Whether a call gets the element before it is read in a pass: it might write into it."""
    statement = next((one for one in walk.loop.body if one in place.path), None)
    if statement is None:
        return True
    earlier = [node for one in walk.loop.body[: walk.loop.body.index(statement)] for node in ast.walk(one)]
    calls = [node for node in (*earlier, *ast.walk(statement)) if isinstance(node, ast.Call) and node not in place.path]
    opaque = [call for call in calls if not (isinstance(call.func, ast.Name) and call.func.id in HARMLESS)]
    return any(walk.name in names_in(*call.args, *(one.value for one in call.keywords)) for call in opaque)


# Words


def as_read(read: Read, value: str) -> str:
    """The number in the type in which it was read."""
    same = read.how == "item" or (read.how == "int" and read.value.integer is True)
    return value if same else f"{read.how}({value})"


def said(place: Place, what: str, assumed: Sequence[str], *edits: Edit | Sequence[Edit]) -> Fix:
    if not assumed:
        return place.fix(Applicability.EXACT, what, *edits)
    return place.fix(Applicability.REVIEW, f"{what}, where {' and '.join(assumed)}", *edits)


def source_of(place: Place, node: ast.AST) -> str:
    return place.outline.source(place.outline.span(node))


def word_of(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.strip("_")
        case ast.Call(func=function):
            return word_of(function)
    return "steps"



