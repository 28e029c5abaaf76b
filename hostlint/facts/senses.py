"""How the parts of a test decide it, and the names that stand in it."""
from __future__ import annotations

import ast
from collections.abc import Callable
from functools import lru_cache

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


@lru_cache(maxsize=64)
def identifiers(test: ast.expr) -> tuple[str, ...]:
    """Every name and attribute in a test; kept for a while, since each kind of guard asks for the same."""
    parts = (part for part in walk(test) if isinstance(part, (ast.Name, ast.Attribute)))
    return tuple(part.id if isinstance(part, ast.Name) else part.attr for part in parts)
