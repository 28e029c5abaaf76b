"""Whether two lines of a text lie in branches of which only one runs."""
from __future__ import annotations

import ast
from collections.abc import Sequence

ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def are_exclusive(text: str, one: int, other: int) -> bool:
    """Whether a test decides which of two lines of a function runs; what cannot be parsed says nothing."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return True
    low, high = sorted((one, other))
    return any(_parts(node, low, high) for node in ast.walk(tree) if isinstance(node, (ast.If, ast.IfExp, ast.Try, ast.Match)))


def _parts(node: ast.AST, low: int, high: int) -> bool:
    arms: list[Sequence[ast.AST]]
    if isinstance(node, ast.IfExp):
        arms = [[node.body], [node.orelse]]
        if low == high:
            return _within([node], low)
    elif isinstance(node, ast.If):
        arms = [node.body, node.orelse]
    elif isinstance(node, ast.Try):
        arms = [node.body, *(handler.body for handler in node.handlers)]
    else:
        arms = [case.body for case in node.cases] if isinstance(node, ast.Match) else []
    at_low = next((place for place, arm in enumerate(arms) if _within(arm, low)), -1)
    if at_low < 0:
        return False
    if any(_within(arm, high) for place, arm in enumerate(arms) if place != at_low):
        return True
    leaves = isinstance(node, ast.If) and isinstance(arms[at_low][-1], ENDS)
    return leaves and not _within(arms[at_low], high)


def _within(arm: Sequence[ast.AST], line: int) -> bool:
    return any(getattr(part, "lineno", 0) <= line <= (getattr(part, "end_lineno", 0) or 0) for part in arm)
