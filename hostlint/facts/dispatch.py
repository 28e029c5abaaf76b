"""The registry that sends each kind of expression to the function that lowers it."""
from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from hostlint.facts.builder import FunctionBuilder

# Each lowering takes its own subclass of ast.expr; the registry guarantees the match, which types cannot say.
Lowering = Callable[[FunctionBuilder, Any], int]
_LOWERINGS: dict[type[ast.expr], Lowering] = {}


def lowers(*kinds: type[ast.expr]) -> Callable[[Lowering], Lowering]:
    """Registers the function as the one that lowers these kinds of expressions."""
    def register(function: Lowering) -> Lowering:
        _LOWERINGS.update(dict.fromkeys(kinds, function))
        return function

    return register


def lower(b: FunctionBuilder, node: ast.expr) -> int:
    """The node of the expression's value in the graph of `b`; syntax that is newer than this table is unknown."""
    lowering = _LOWERINGS.get(type(node))
    return lowering(b, node) if lowering is not None else b.unknown(node.lineno)
