"""Attributes that an object has only where construction was asked for them: the test under which `__init__` makes each."""
from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from hostlint.facts.trees import walk

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def made_where(node: ast.ClassDef) -> dict[str, ast.expr]:
    """For each attribute that `__init__` sets to something under one test alone, and else to None, that test."""
    methods = [statement for statement in node.body if isinstance(statement, _FUNCTIONS)]
    made = next((method for method in methods if method.name == "__init__"), None)
    if made is None or not made.args.args:
        return {}
    found = list(_stores(made.body, made.args.args[0].arg, ()))
    elsewhere = {name for method in methods if method is not made for name in _set_in(method)}
    tests: dict[str, ast.expr] = {}
    for name in {name for name, _, _ in found} - elsewhere:
        stores = [(value, around) for stored, value, around in found if stored == name]
        kept = [(value, around) for value, around in stores if not _is_none(value)]
        if len(kept) == 1 and (len(stores) > 1 or isinstance(kept[0][0], ast.IfExp)):
            test = _test(*kept[0])
            if test is not None:
                tests[name] = test
    return tests


def _test(value: ast.expr, around: Sequence[ast.expr]) -> ast.expr | None:
    """What holds wherever the value is stored."""
    parts = list(around)
    if isinstance(value, ast.IfExp) and _is_none(value.orelse):
        parts.append(value.test)
    elif isinstance(value, ast.IfExp) and _is_none(value.body):
        parts.append(_denied(value.test))
    return parts[0] if len(parts) == 1 else ast.copy_location(ast.BoolOp(ast.And(), parts), value) if parts else None


def _stores(body: Sequence[ast.stmt], receiver: str, around: tuple[ast.expr, ...]) -> Iterator[tuple[str, ast.expr, tuple[ast.expr, ...]]]:
    """Every `self.name = value` of a block, with the tests around it."""
    for statement in body:
        if isinstance(statement, ast.If):
            yield from _stores(statement.body, receiver, (*around, statement.test))
            yield from _stores(statement.orelse, receiver, (*around, _denied(statement.test)))
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
            for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
                if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == receiver:
                    yield target.attr, statement.value, around
        else:  # what a loop or a `with` stores is there whatever the tests say
            yield from ((name, ast.Constant(...), ()) for name in _set_in(statement))


def _set_in(node: ast.AST) -> Iterator[str]:
    """The attributes that a statement or function may bind to something, of whatever object."""
    parts = list(walk(node))
    cleared = {id(to) for part in parts if isinstance(part, ast.Assign) and _is_none(part.value) for to in part.targets}
    for part in parts:
        if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store) and id(part) not in cleared:
            yield part.attr


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _denied(test: ast.expr) -> ast.expr:
    return ast.copy_location(ast.UnaryOp(ast.Not(), test), test)
