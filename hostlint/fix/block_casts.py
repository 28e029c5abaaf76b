"""A cast that every block repeats: once before the loop over the blocks, which are handed its result."""
from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from hostlint.fix.hoist import expression, name_for
from hostlint.fix.loops import bindings_of, loads_of, may_change, names_in, shared_with_nested
from hostlint.fix.outline import FUNCTIONS
from hostlint.model import Applicability
from hostlint.values.loops import VIEWS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostlint.fix.loops import Function
    from hostlint.fix.place import Place
    from hostlint.model import Fix


def cast_once(place: Place) -> Fix | None:
    """`mask.bool()` in a block's forward: `mask_bool = mask.bool()` before the loop, `block(x, mask_bool)` in it."""
    node, block, name = expression(place), place.function, place.fact.detail
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or block is None or not _is_only_cast(block, node, name):
        return None
    path = _call_path(place, block)
    call = path[-1] if path else None
    caller = next((one for one in reversed(path) if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))), None)
    loop = next((one for one in reversed(path) if isinstance(one, ast.For)), None)
    given = _given(block, call, name) if isinstance(call, ast.Call) else None
    if caller is None or loop is None or not isinstance(given, ast.Name) or may_change(caller, loop, frozenset({given.id})):
        return None
    uses = [one for one in loads_of(loop, given.id) if one is not given]
    others = names_in(*node.args, *(keyword.value for keyword in node.keywords))
    if uses or shared_with_nested(caller, given.id) or not all(place.outline.meaning(one, path) for one in others):
        return None
    source = place.outline.source(place.outline.span(node))
    method = source[_length(place, node.func.value) :]
    cast = ast.parse(f"{given.id}{method}", mode="eval").body if "\n" not in method else None
    if cast is None:
        return None
    fresh = place.fresh(name_for(cast))
    may_be_none = any(_asks(function, one) for function, one in ((caller, given.id), (block, name)))
    whole = f"{given.id}{method}" + (f" if {given.id} is not None else None" if may_be_none else "")
    added = place.before(loop, f"{fresh} = {whole}")
    if added is None:
        return None
    message = f"cast once before the loop over the blocks, where all of them cast `{name}` in the same way and none writes into it"
    return place.fix(Applicability.REVIEW, message, added, place.replace(fresh, given))


def _length(place: Place, node: ast.expr) -> int:
    return len(place.outline.source(place.outline.span(node)))


def _is_only_cast(block: Function, node: ast.Call, name: str) -> bool:
    """Whether the block does nothing else with the parameter than to cast it, as it is or as a view, and to ask if it is None."""
    value = _viewed(node.func)
    asked = sum(_asks_once(one, name) for one in ast.walk(block))
    rebinds = [one for one in ast.walk(block) if isinstance(one, ast.Assign) and one.value is node and _is_name(one.targets, name)]
    if rebinds:
        return isinstance(value, ast.Name) and len(bindings_of(block, name)) == 1 and rebinds[0] in block.body
    return isinstance(value, ast.Name) and value.id == name and len(loads_of(block, name)) == 1 + asked and not bindings_of(block, name)


def _viewed(node: ast.expr) -> ast.expr:
    """What a method belongs to, views looked through."""
    match node:
        case ast.Attribute(value=ast.Subscript(value=inner)):
            return _viewed(ast.Attribute(inner, "", ast.Load()))
        case ast.Attribute(value=ast.Call(func=ast.Attribute(attr=name) as method)) if name in VIEWS:
            return _viewed(method)
        case ast.Attribute(value=value):
            return value
    return node


def _is_name(targets: Sequence[ast.expr], name: str) -> bool:
    return len(targets) == 1 and isinstance(targets[0], ast.Name) and targets[0].id == name


def _asks(function: Function, name: str) -> bool:
    return any(_asks_once(one, name) for one in ast.walk(function)) or _is_optional(function, name)


def _asks_once(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Compare(left=ast.Name(id=same), ops=[ast.Is() | ast.IsNot()]):
            return same == name
    return False


def _is_optional(function: Function, name: str) -> bool:
    placed = [*function.args.posonlyargs, *function.args.args]
    optional = [one.arg for one in placed[len(placed) - len(function.args.defaults) :]] if function.args.defaults else []
    return name in (*optional, *(one.arg for one in function.args.kwonlyargs))


def _call_path(place: Place, block: Function) -> tuple[ast.AST, ...]:
    """What encloses the call of the block in a loop, by the chain that makes the place hot; the call is the last."""
    links = place.fact.heat.chain
    if len({(link.path, link.function) for link in links} | {(place.fact.path, place.fact.function)}) != 2:
        return ()  # what hands it on may use it otherwise
    lines = {link.line for link in links if link.path == place.fact.path}
    for node in ast.walk(place.outline.tree):
        if isinstance(node, ast.Call) and node.lineno in lines:
            path = place.outline.around(place.outline.span(node))
            in_loop = [one for one in path if isinstance(one, (ast.For, *FUNCTIONS))]
            if path[-1] is node and in_loop and isinstance(in_loop[-1], ast.For) and _walks(in_loop[-1], node) and block not in path:
                return path
    return ()


def _walks(loop: ast.For, call: ast.Call) -> bool:
    """Whether what the loop walks over is called: `block(x)`."""
    return isinstance(call.func, ast.Name) and call.func.id in names_in(loop.target)


def _given(block: Function, call: ast.Call, name: str) -> ast.expr | None:
    """What a call of the module passes for a parameter of its forward."""
    if any(isinstance(one, ast.Starred) for one in call.args) or any(one.arg is None for one in call.keywords):
        return None
    named = next((one.value for one in call.keywords if one.arg == name), None)
    names = [one.arg for one in (*block.args.posonlyargs, *block.args.args)][1:]
    placed = dict(zip(names, call.args, strict=False))
    return named if named is not None else placed.get(name)


