"""Whether autograd is known to be off at a place, so that a fix need not keep gradients."""
from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from hostlint.fix.outline import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostlint.fix.place import Place

OFF = frozenset({"torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad", "torch.autograd.inference_mode"})
SWITCHES = frozenset({"enable_grad", "set_grad_enabled", "inference_mode"})


def gradients_are_off(place: Place) -> bool:
    """Whether the place stands in the body of `with torch.no_grad():`, or of a function that this decorates."""
    for number in range(len(place.path) - 1, 0, -1):
        outer, inner = place.path[number - 1], place.path[number]
        if isinstance(outer, ast.With) and inner in outer.body:
            if any(_is_off(place, item.context_expr, place.path[:number]) for item in outer.items):
                return True
            if any(_switches(item.context_expr) for item in outer.items):
                return False
        if isinstance(outer, (ast.Lambda, ast.GeneratorExp)):
            return False
        if isinstance(outer, FUNCTIONS):
            return _is_decorated(place, outer, place.path[: number - 1])
    return False


def _is_decorated(place: Place, function: ast.AST, path: Sequence[ast.AST]) -> bool:
    decorators: list[ast.expr] = getattr(function, "decorator_list", [])
    off = any(_is_off(place, one, path) or _dotted(place, one, path) in OFF for one in decorators)
    body: list[ast.stmt] = getattr(function, "body", [])
    return off and not any(_switches(node) for statement in body for node in ast.walk(statement))


def _is_off(place: Place, node: ast.expr, path: Sequence[ast.AST]) -> bool:
    """`torch.no_grad()`: called without arguments, for `inference_mode(False)` is something else."""
    return isinstance(node, ast.Call) and not node.args and not node.keywords and _dotted(place, node.func, path) in OFF


def _switches(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Attribute) and part.attr in SWITCHES for part in ast.walk(node)) or (
        isinstance(node, ast.Name) and node.id in SWITCHES
    )


def _dotted(place: Place, node: ast.expr, path: Sequence[ast.AST]) -> str:
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.insert(0, node.attr)
        node = node.value
    root = place.outline.meaning(node.id, path) if isinstance(node, ast.Name) else ""
    return ".".join((root, *names)) if root else ""
