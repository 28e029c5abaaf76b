"""Binding and reading names, attributes and items: what an assignment target does to the environment."""
from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hostlint.facts.bound import bound_chains
from hostlint.facts.chains import OPAQUE, chain
from hostlint.facts.dispatch import lower
from hostlint.facts.graph import Node, Op, SiteKind
from hostlint.facts.trees import walk

if TYPE_CHECKING:
    from hostlint.facts.builder import Environment, FunctionBuilder, Loop


def read_name(b: FunctionBuilder, name: str, line: int) -> int:
    """The node that a name holds here: bound in this function, in one around it, or in the module."""
    if b.env is not None:
        if name in b.env:
            return b.env[name]
        if any(name in loop.binds for loop in b.loops):
            return _carried(b, b.env, name, line)
    if name in b.bindings and b.index and name not in b.outer_names:
        return b.unknown(line)
    return b.keep(_outer(b, name, line))


def _outer(b: FunctionBuilder, name: str, line: int) -> Node:
    """The node of a name that the function itself does not bind."""
    functions = b.file.functions
    index = b.parent
    while index > 0:
        if name in functions[index].bindings:
            return (int(Op.FREE), line, name, index)
        index = functions[index].parent
    return (int(Op.GLOBAL), line, name)


def _carried(b: FunctionBuilder, env: Environment, name: str, line: int) -> int:
    """A name that an open loop binds further down: it holds what an earlier round left there."""
    node = b.keep(_outer(b, name, line)) if name in b.outer_names else -1
    for loop in b.loops:
        if name in loop.binds:
            if name not in loop.phis:
                loop.phis[name] = b.add(Op.PHI, line, (node,) if node >= 0 else ())
            node = loop.phis[name]
    env[name] = node
    return node


def close_loop(b: FunctionBuilder, loop: Loop, ends: Sequence[Environment | None]) -> None:
    """Give the PHI nodes of a loop's head what its rounds leave; a name that turns out to be bound elsewhere is looked up there."""
    for name, phi in loop.phis.items():
        _, line, given = b.nodes[phi]
        assert isinstance(given, tuple)
        left = (env[name] for env in ends if env is not None and name in env)
        operands = tuple(dict.fromkeys(node for node in (*given, *left) if node != phi))
        b.nodes[phi] = (int(Op.PHI), line, operands) if operands else _outer(b, name, loop.line)


def hand_out(b: FunctionBuilder) -> None:
    """What a function binds to a name that it declares global or nonlocal is one of the values of the scope that holds the name."""
    for name, is_global in b.outer_names.items():
        values = b.bindings.get(name, [])
        if values and not all(_counts(b, value, name) for value in values):
            holder = b.file.functions[0 if is_global else _holder(b, name)]
            holder.bindings.setdefault(name, []).append(holder.add(Op.FREE, b.line, name, b.index))
            holder.assigns.update((pair, None) for pair in b.assigns if pair[0] == name)


def _holder(b: FunctionBuilder, name: str) -> int:
    scope = b.file.functions[b.parent]
    while scope.index and (name not in scope.bindings or name in scope.outer_names):
        scope = b.file.functions[scope.parent]
    return scope.index


def _counts(b: FunctionBuilder, value: int, name: str) -> bool:
    """`count += 1` makes of a number another number."""
    op, _, *parts = b.nodes[value]
    if op != Op.BINOP:
        return False
    operands = [b.nodes[part] for part in parts if isinstance(part, int)]
    return any(node[0] == Op.CONST for node in operands) and any(node[0] in (Op.GLOBAL, Op.FREE) and node[2] == name for node in operands)


def names_of(target: ast.expr) -> list[str]:
    """Every name in a target."""
    return [part.id for part in walk(target) if isinstance(part, ast.Name)]


def assign_target(b: FunctionBuilder, target: ast.expr, value: int) -> None:
    """Bind a simple, starred or nested target; attributes and subscripts are written by the statements module."""
    if isinstance(target, ast.Name):
        b.bind(target.id, _as_commented(b, target.id, value))
        b.forget_attributes(target.id)
    elif isinstance(target, (ast.Tuple, ast.List)):
        count = len(target.elts)
        for position, part in enumerate(target.elts):
            starred = isinstance(part, ast.Starred)
            piece = b.add(Op.UNPACK, target.lineno, value, -1 if starred else position, count)
            assign_target(b, part.value if isinstance(part, ast.Starred) else part, piece)
    elif isinstance(target, ast.Attribute):
        store_attribute(b, target, value, None)
    elif isinstance(target, ast.Subscript):
        store_item(b, target, value)


def store_attribute(b: FunctionBuilder, target: ast.Attribute, value: int, source: ast.expr | None, annotation: str = "") -> None:
    """`self.name = value`: kept for the class (any method may read it) and for the rest of this function."""
    if isinstance(target.value, ast.Name):
        value = _as_commented(b, chain(target), value)
        if b.env is not None:
            b.env[f"{target.value.id}.{target.attr}"] = value
        owner = _class_of(b, target.value.id)
        if owner >= 0:
            texts = [annotation] if annotation else bound_chains(source) if source is not None else []
            b.file.classes[owner].attributes.extend((target.attr, b.index, value, text) for text in texts or [""])
    else:
        lower(b, target.value)


def _class_of(b: FunctionBuilder, name: str) -> int:
    """The class whose instance a name is: `self` of a method, also in the functions inside it; -1 for any other name."""
    scope = b
    while scope.index and name != scope.self_name:
        if name in scope.bindings:
            return -1
        scope = b.file.functions[scope.parent]
    return scope.owner if scope.index else -1


def _as_commented(b: FunctionBuilder, name: str, value: int) -> int:
    """The value that a name is bound to, with what a `# hostlint:` comment on a line of the statement says of it."""
    if b.file.hints:
        first, last = b.statement
        for line in range(first, last + 1):
            for said_of, what in b.file.hints.get(line, ()):
                if said_of == name:
                    value = b.add(Op.REFINE, line, value, what)
    return value


def keep_element(b: FunctionBuilder, table: ast.expr, values: Sequence[ast.expr]) -> None:
    """Functions, classes and objects that have a name and are stored in a container: `table[key] = f`."""
    if not isinstance(table, (ast.Name, ast.Attribute, ast.Subscript)):
        return
    texts = (text for value in values if not isinstance(value, ast.Constant) for text in bound_chains(value))
    name = f"{chain(table)}[]"
    if not name.startswith(OPAQUE):
        b.assigns.update(((name, text), None) for text in texts if "(" not in text)


def store_item(b: FunctionBuilder, target: ast.Subscript, value: int, augmented: bool = False) -> int:
    """`x[i] = v`, after which a local x is the container with the new element."""
    base, index = lower(b, target.value), lower(b, target.slice)
    result = b.add(Op.STORE, target.lineno, base, index, value)
    b.site(SiteKind.AUGMENTED if augmented else SiteKind.WRITE, result, target, subject=target.value)
    if isinstance(target.value, ast.Name) and b.env is not None and target.value.id in b.env:
        b.bind(target.value.id, result)
    return result
