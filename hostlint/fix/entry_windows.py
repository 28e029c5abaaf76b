"""Tests of a table's entry against bounds, one in each pass (`t = ticks[i]`): all entries are compared before the loop, read once."""
from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hostlint.fix.hoist import expression
from hostlint.fix.loops import bindings_of, chain, chains_in, loads_of, may_be_none, may_change, names_in, shared_with_nested, written_in
from hostlint.fix.schedule import said, source_of, word_of
from hostlint.fix.sums import is_number

if TYPE_CHECKING:
    from hostlint.fix.loops import Function
    from hostlint.fix.outline import Loop
    from hostlint.fix.place import Place
    from hostlint.model import Fix

OPERATORS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}


@dataclass(frozen=True, slots=True)
class Entry:
    """What a pass takes out of a table under a name of its own: `name = table[index]`."""

    loop: Loop
    name: str
    table: ast.Name | ast.Attribute
    index: ast.expr
    counted: bool  # the index is proved to be a loop's counter


def compared_entries(place: Place) -> Fix | None:
    """`t = ticks[i]` and `if low <= t <= high:` in a loop to `if ticks_inside[i]:`, where all ticks are compared before the loop."""
    node, function = expression(place), place.function
    if not isinstance(node, ast.Compare) or function is None or not all(type(one) in OPERATORS for one in node.ops):
        return None
    operands = [node.left, *node.comparators]
    entries = [entry for one in operands if isinstance(one, ast.Name) and (entry := entry_of(place, one.id)) is not None]
    if len(entries) != 1 or not truth_only(place, node):
        return None
    entry = entries[0]
    bounds = [one for one in operands if not (isinstance(one, ast.Name) and one.id == entry.name)]
    if len(bounds) + 1 != len(operands) or not all(_is_alike(place, entry.loop, one) for one in bounds):
        return None
    if any(may_be_none(function, one) for one in (entry.table, *bounds)):
        return None
    table, index = source_of(place, entry.table), source_of(place, entry.index)
    words = [source_of(place, one) if one in bounds else table for one in operands]
    pairs = [f"{words[number]} {OPERATORS[type(one)]} {words[number + 1]}" for number, one in enumerate(node.ops)]
    compared = pairs[0] if len(pairs) == 1 else " & ".join(f"({one})" for one in pairs)
    name = place.fresh(f"{word_of(entry.table)}_inside")
    added = place.before(entry.loop, f"{name} = ({compared}).tolist()")
    if added is None:
        return None
    what = "compare all entries on the device, in the table's own dtype, and read the answers once"
    return said(place, what, _assumed(place, entry, bounds), place.replace(f"{name}[{index}]"), added)


def _assumed(place: Place, entry: Entry, bounds: list[ast.expr]) -> list[str]:
    table = source_of(place, entry.table)
    assumed = [f"`{table}` is a 1-D tensor"]
    if not entry.counted:
        assumed.append(f"`{source_of(place, entry.index)}` is a Python int")
    words = [f"`{source_of(place, one)}`" for one in bounds if not is_number(one)]
    if words:
        assumed.append(f"{' and '.join(words)} {'is a Python number' if len(words) == 1 else 'are Python numbers'}")
    return [*assumed, f"nothing writes into `{table}` during the loop"]


def entry_of(place: Place, name: str) -> Entry | None:
    """The loop around the place in which the name is a table's entry, where table, index and entry stay what they are in a pass."""
    function = place.function
    for loop in place.loops:
        bound = bindings_of(loop, name)
        if not bound:
            continue
        statement = next((one for one in loop.body if getattr(one, "targets", None) == bound), None)
        match statement:
            case ast.Assign(value=ast.Subscript(value=ast.Name() | ast.Attribute() as table, slice=index)) if _is_plain(index):
                pass
            case _:
                return None
        inside = next((one for one in loop.body if one in place.path), None)
        if function is None or inside is None or loop.body.index(inside) <= loop.body.index(statement):
            return None
        if not chain(table) or shared_with_nested(function, name) or may_change(function, loop, frozenset({chain(table)})):
            return None
        counters = names_in(index)
        if any(one in written_in(loop) or not _is_target(loop, one) for one in counters):
            return None
        return Entry(loop, name, table, index, all(_counts(loop, one) for one in counters)) if counters else None
    return None


def _is_plain(index: ast.expr) -> bool:
    """Whether an index is a name or a number, or the sum or difference of such."""
    match index:
        case ast.Name() | ast.Constant(value=int()):
            return True
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            return _is_plain(left) and _is_plain(right)
    return False


def _is_target(loop: Loop, name: str) -> bool:
    """Whether a loop binds a name in its header alone, or not at all."""
    target = names_in(loop.target) if isinstance(loop, ast.For) else frozenset()
    return len(bindings_of(loop, name)) == (1 if name in target else 0)


def _counts(loop: Loop, name: str) -> bool:
    match loop:
        case ast.For(target=ast.Name(id=counter), iter=ast.Call(func=ast.Name(id="range"))):
            return counter == name
        case ast.For(target=ast.Tuple(elts=[ast.Name(id=counter), _]), iter=ast.Call(func=ast.Name(id="enumerate"))):
            return counter == name
    return False


def _is_alike(place: Place, loop: Loop, bound: ast.expr) -> bool:
    """Whether a bound is one name, attribute, number or element of a pair, which the loop leaves as it is."""
    match bound:
        case ast.Constant() | ast.UnaryOp(operand=ast.Constant()):
            return True
        case ast.Name() | ast.Attribute() | ast.Subscript(value=ast.Name() | ast.Attribute(), slice=ast.Constant(value=int())):
            function = place.function
            return bool(chain(bound)) and function is not None and not may_change(function, loop, chains_in(bound))
    return False


def truth_only(place: Place, node: ast.expr) -> bool:
    """Whether the truth of an expression is all that is used: where it is given a name, of all that is read by that name."""
    function = place.function
    if function is None:
        return False
    above = {child: parent for parent in ast.walk(function) for child in ast.iter_child_nodes(parent)}
    return _is_tested(function, node, above, 0)


def _is_tested(function: Function, node: ast.AST, above: dict[ast.AST, ast.AST], depth: int) -> bool:
    outer = above.get(node)
    match outer:
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test) | ast.Assert(test=test) if test is node:
            return True
        case ast.IfExp() | ast.BoolOp():
            return _is_tested(function, outer, above, depth)
        case ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Call(func=ast.Name(id="bool"), args=[_], keywords=[]):
            return True
        case ast.Assign(targets=[ast.Name(id=name)]) if depth == 0 and not shared_with_nested(function, name):
            return all(_is_tested(function, one, above, 1) for one in loads_of(function, name))
    return False
