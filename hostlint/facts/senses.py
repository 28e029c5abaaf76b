"""How the parts of a test decide it, and the names that stand in it."""
from __future__ import annotations

import ast
from collections.abc import Callable
from functools import lru_cache

from hostlint.facts.chains import chain
from hostlint.facts.memos import none_test
from hostlint.facts.trees import walk


def sense(test: ast.expr, leaf: Callable[[ast.expr], int]) -> int:
    """1 where a test holds only if what the leaf says does, -1 where it fails only so, 0 where neither follows."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return -sense(test.operand, leaf)
    if not isinstance(test, ast.BoolOp):
        return leaf(test)
    senses = {sense(part, leaf) for part in test.values}
    decisive = 1 if isinstance(test.op, ast.And) else -1
    return decisive if decisive in senses else senses.pop() if len(senses) == 1 else 0


def is_test(node: ast.expr) -> bool:
    """An expression whose outcome is a truth value, or asked for as one."""
    return isinstance(node, (ast.Compare, ast.BoolOp, ast.IfExp)) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))


def written_out(test: ast.expr, held: Callable[[str], ast.expr | None], depth: int = 3) -> ast.expr:
    """The test with the tests in place of the names that hold their outcomes; the very same node where there are none."""
    if isinstance(test, ast.Name):
        found = held(test.id) if depth else None
        return written_out(found, held, depth - 1) if found is not None else test
    if isinstance(test, ast.NamedExpr):
        return written_out(test.value, held, depth)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = written_out(test.operand, held, depth)
        return test if inner is test.operand else ast.copy_location(ast.UnaryOp(test.op, inner), test)
    if isinstance(test, ast.IfExp) and isinstance(test.orelse, ast.Constant) and test.orelse.value is False:
        both = ast.BoolOp(ast.And(), [test.test, test.body])
        return written_out(ast.copy_location(both, test), held, depth)
    if isinstance(test, ast.BoolOp):
        parts = [written_out(part, held, depth) for part in test.values]
        same = all(one is other for one, other in zip(parts, test.values, strict=True))
        return test if same else ast.copy_location(ast.BoolOp(test.op, parts), test)
    return test


def where_made(test: ast.expr, held: Callable[[str], ast.expr | None]) -> ast.expr:
    """The test with, for an attribute that is asked for, the test under which construction makes it; the very same node where none is."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = where_made(test.operand, held)
        return test if inner is test.operand else ast.copy_location(ast.UnaryOp(ast.Not(), inner), test)
    if isinstance(test, ast.BoolOp):
        parts = [where_made(part, held) for part in test.values]
        same = all(one is other for one, other in zip(parts, test.values, strict=True))
        return test if same else ast.copy_location(ast.BoolOp(test.op, parts), test)
    name = chain(test) if isinstance(test, ast.Attribute) else none_test(test) or ""
    made = held(name) if "." in name else None
    if made is None:
        return test
    missing = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Is)
    return ast.copy_location(ast.UnaryOp(ast.Not(), made), test) if missing else made


@lru_cache(maxsize=64)
def identifiers(test: ast.expr) -> tuple[str, ...]:
    """Every name and attribute in a test; kept for a while, since each kind of guard asks for the same."""
    parts = (part for part in walk(test) if isinstance(part, (ast.Name, ast.Attribute)))
    return tuple(part.id if isinstance(part, ast.Name) else part.attr for part in parts)
