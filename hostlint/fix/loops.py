"""What a fix that moves work must know of a loop: which names it binds, writes to and leaves by, and what a function does with a name."""
from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from hostlint.facts.trees import walk
from hostlint.fix.outline import COMPREHENSIONS, FUNCTIONS, LOOPS
from hostlint.values.loops import VIEWS

if TYPE_CHECKING:
    from hostlint.fix.outline import Loop
    from hostlint.fix.place import Place

NESTED = (*FUNCTIONS, ast.ClassDef)
LEAVING = (ast.Break, ast.Continue, ast.Return, ast.Raise, ast.Assert)
NUMBERS = frozenset({"int", "len", "min", "max", "round", "abs"})
Function = ast.FunctionDef | ast.AsyncFunctionDef


def chain(node: ast.AST) -> str:
    """What an expression like `a.b[0].view(-1)` is a part or a view of: `a.b`; "" where it is something new."""
    while True:
        match node:
            case ast.Subscript(value=inner) | ast.Starred(value=inner):
                node = inner
            case ast.Call(func=ast.Attribute(value=inner, attr=method)) if method in VIEWS:
                node = inner
            case ast.Attribute(value=inner, attr=name):
                base = chain(inner)
                return f"{base}.{name}" if base else ""
            case ast.Name(id=name):
                return name
            case _:
                return ""


def chains_in(node: ast.AST) -> frozenset[str]:
    """Every name and attribute that an expression reads, as written."""
    return frozenset(found for one in walk(node) if isinstance(one, ast.Name | ast.Attribute) and (found := chain(one)))


def touches(one: str, other: str) -> bool:
    """Whether two chains are the same, or one is a part of the other."""
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")


def names_in(*nodes: ast.AST) -> frozenset[str]:
    """Every name that the nodes read or bind."""
    return frozenset(one.id for node in nodes for one in walk(node) if isinstance(one, ast.Name))


def bound_in(*nodes: ast.AST) -> frozenset[str]:
    """Every name that the nodes bind, delete or declare, in nested functions and comprehensions too."""
    found: set[str] = set()
    for one in (part for node in nodes for part in walk(node)):
        if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load):
            found.add(one.id)
        elif isinstance(one, ast.arg):
            found.add(one.arg)
        elif isinstance(one, ast.Import | ast.ImportFrom):
            found |= {alias.asname or alias.name.partition(".")[0] for alias in one.names}
        elif isinstance(one, ast.Global | ast.Nonlocal):
            found |= set(one.names)
        elif isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
            found |= {one.name} - {None}  # type: ignore[arg-type]  # what has no name has None
        elif isinstance(one, ast.MatchMapping) and one.rest:
            found.add(one.rest)
    return frozenset(found)


def written_in(*nodes: ast.AST) -> frozenset[str]:
    """The chains that the nodes write to in place: `x` of `x[i] = v`, `x.y` of `x.y = v`, `x` of `x += v`, `x.add_(v)`, `f(out=x)`."""
    found: set[str] = set()
    for one in (part for node in nodes for part in walk(node)):
        if isinstance(one, ast.Attribute | ast.Subscript) and not isinstance(one.ctx, ast.Load):
            found.add(chain(one))
        elif isinstance(one, ast.AugAssign):
            found.add(chain(one.target))
        elif isinstance(one, ast.Call):
            found |= set(_written_by(one))
    return frozenset(found - {""})


def _written_by(call: ast.Call) -> Iterator[str]:
    if isinstance(call.func, ast.Attribute) and call.func.attr.endswith("_") and not call.func.attr.endswith("__"):
        yield chain(call.func.value)
        yield from (chain(argument) for argument in call.args[:1])  # `torch.relu_(x)`
    yield from (chain(keyword.value) for keyword in call.keywords if keyword.arg == "out")


def may_change(function: ast.AST, loop: ast.AST, wanted: frozenset[str]) -> bool:
    """Whether the loop binds or writes to one of these chains, also by another name that the function gives it."""
    if {one.partition(".")[0] for one in wanted} & bound_in(loop):
        return True
    aliases = list(_aliases(function))
    written = set(written_in(loop))
    waiting = list(written)
    while waiting:
        one = waiting.pop()
        for pair in aliases:
            for name, other in (pair, pair[::-1]):
                if touches(one, name) and other not in written:
                    written.add(other)
                    waiting.append(other)
    return any(touches(one, other) for one in wanted for other in written)


def _aliases(function: ast.AST) -> Iterator[tuple[str, str]]:
    """Pairs of chains that may be the same object, or share memory: `row` and `table` after `row = table[0]`."""
    for node in walk(function):
        match node:
            case ast.Assign(targets=targets, value=value):
                pairs = [(target, value) for target in targets]
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
                pairs = [(target, value)]
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                pairs = [(target, value)]
            case _:
                continue
        for target, value in pairs:
            yield from _paired(target, value)


def _paired(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, str]]:
    if isinstance(target, ast.Tuple | ast.List):
        parts = value.elts if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts) else None
        for number, one in enumerate(target.elts):
            yield from _paired(one, parts[number] if parts else value)
        return
    options = [value.body, value.orelse] if isinstance(value, ast.IfExp) else value.values if isinstance(value, ast.BoolOp) else [value]
    yield from ((chain(target), other) for one in options if chain(target) and (other := chain(one)))


def may_be_none(function: Function, value: ast.expr) -> bool:
    """Whether the function asks if a value is None, sets it to None or may be given None for it."""
    name = chain(value)
    given = function.args
    placed = [*given.posonlyargs, *given.args]
    named = [*zip(reversed(placed), reversed(given.defaults), strict=False), *zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    if any(one.arg == name and isinstance(default, ast.Constant) and default.value is None for one, default in named):
        return True
    for node in walk(function):
        match node:
            case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot()]) if name and chain(left) == name:
                return True
            case ast.Assign(targets=[target], value=assigned) if name and chain(target) == name:
                if any(isinstance(one, ast.Constant) and one.value is None for one in walk(assigned)):
                    return True
    return False


def handed_on(nodes: Sequence[ast.AST]) -> frozenset[str]:
    """The names that calls get as arguments, or whose methods are called: what someone else may write to."""
    calls = [part for node in nodes for part in walk(node) if isinstance(part, ast.Call)]
    return names_in(*(argument for call in calls for argument in (*call.args, *(keyword.value for keyword in call.keywords))))


def shared_with_nested(function: Function, name: str) -> bool:
    """Whether a nested function, class or generator uses the name, or a declaration takes it out of the function."""
    for node in walk(function):
        if isinstance(node, (*NESTED, ast.GeneratorExp)) and node is not function and name in names_in(node) | bound_in(node):
            return True
        if isinstance(node, ast.Global | ast.Nonlocal) and name in node.names:
            return True
    return False


def loads_of(node: ast.AST, name: str) -> list[ast.Name]:
    return [one for one in walk(node) if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load)]


def bindings_of(node: ast.AST, name: str) -> list[ast.Name]:
    return [one for one in walk(node) if isinstance(one, ast.Name) and one.id == name and not isinstance(one.ctx, ast.Load)]


def block_of(path: Sequence[ast.AST], statement: ast.stmt) -> list[ast.stmt]:
    """The list of statements in which a statement of the path stands."""
    for outer in reversed(path):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(outer, field, None)
            if isinstance(block, list) and any(one is statement for one in block):
                return block
    return []


def blocks_of(node: ast.AST) -> list[list[ast.stmt]]:
    """The lists of statements that a node holds itself."""
    found = [getattr(node, field, None) for field in ("body", "orelse", "finalbody")]
    return [block for block in found if isinstance(block, list)]


def siblings_before(path: Sequence[ast.AST], statement: ast.stmt) -> list[ast.stmt]:
    """The statements before one in its block, nearest first."""
    block = block_of(path, statement)
    number = next((number for number, one in enumerate(block) if one is statement), 0)
    return list(reversed(block[:number]))


def is_caught(path: Sequence[ast.AST], inside: ast.AST) -> bool:
    """Whether a `try` of the function stands around a node of the path: what it does may then be seen half done."""
    number = next((number for number, one in enumerate(path) if one is inside), len(path) - 1)
    for outer, inner in reversed(list(pairwise(path[: number + 1]))):
        if isinstance(outer, NESTED):
            return False
        if type(outer).__name__ in ("Try", "TryStar") and inner in getattr(outer, "body", ()):
            return True
    return False


def leaves_function(loop: Loop) -> bool:
    """Whether a pass may return or yield: then what stands after the loop may not run, or others look in between."""
    return any(isinstance(node, ast.Return | ast.Yield | ast.YieldFrom | ast.Await) for one in loop.body for node in own(one))


def own(node: ast.AST) -> Iterator[ast.AST]:
    """A node and what is in it, nested functions and classes left out."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, NESTED):
            yield from own(child)


def direct_loop(place: Place) -> tuple[Loop, ast.stmt] | None:
    """The innermost loop around a place with the statement of its body that holds it; None where the loop is in another function."""
    loop = next(iter(place.loops), None)
    if loop is None:
        return None
    statement = next((one for one in loop.body if one in place.path), None)
    return (loop, statement) if statement is not None else None


def is_unconditional(path: Sequence[ast.AST], outer: ast.AST) -> bool:
    """Whether the last node of the path is evaluated whenever `outer`, a statement of the path, is."""
    number = next((number for number, one in enumerate(path) if one is outer), 0)
    for above, inner in pairwise(path[number:]):
        if isinstance(above, (ast.If, ast.While, ast.IfExp)) and inner is not above.test:
            return False
        if isinstance(above, LOOPS) and inner is not getattr(above, "iter", None):
            return False
        if isinstance(above, ast.BoolOp) and inner is not above.values[0]:
            return False
        if isinstance(above, ast.Compare) and inner not in (above.left, *above.comparators[:1]):
            return False
        if isinstance(above, (*COMPREHENSIONS, *NESTED, ast.With, ast.AsyncWith, ast.Match, ast.Assert)):
            return False
        if type(above).__name__ in ("Try", "TryStar"):
            return False
    return True


def is_spelled_as_number(index: ast.expr) -> bool:
    """Whether an index may be one number of the host: no mask (`steps == t`), no slice, list, or whatever a method finds."""
    match index:
        case ast.Name() | ast.Constant(value=int()) | ast.Subscript(slice=ast.Name() | ast.Constant() | ast.UnaryOp()):
            return True
        case ast.Attribute():
            return bool(chain(index))
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=inner):
            return is_spelled_as_number(inner)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv() | ast.Mod(), right=right):
            return is_spelled_as_number(left) and is_spelled_as_number(right)
        case ast.Call(func=ast.Name(id=name)):
            return name in NUMBERS
    return False


def changing_names(place: Place, node: ast.AST) -> frozenset[str]:
    """The names of an expression that may mean, or hold, something else in another call: of the functions around it, of globals that are
    bound anew, and of objects of the module whose attributes are read."""
    around = bound_in(*(one for one in place.path if isinstance(one, (*FUNCTIONS, *COMPREHENSIONS))))
    rebound = {name for one in ast.walk(place.outline.tree) if isinstance(one, ast.Global) for name in one.names}
    parts = [chain(one).partition(".")[0] for one in ast.walk(node) if isinstance(one, ast.Attribute | ast.Subscript)]
    held = {root for root in parts if root and not place.outline.meaning(root, place.path)}
    return names_in(node) & (around | rebound | held)
