"""Where an import, or a helper function, goes in a module: after its docstring, `__future__` imports and the imports before it."""
from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING

from hostlint.model import Edit, Span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostlint.fix.outline import Outline

IMPORTS = (ast.Import, ast.ImportFrom)


def import_edit(outline: Outline, line: str) -> Edit:
    """The edit that adds one import line (`import torch`), sorted into the imports of its kind at the top of the module."""
    new = ast.parse(line).body[0]
    body = outline.tree.body
    head = _head(body)
    previous: ast.stmt | None = next((one for one in reversed(head) if isinstance(one, IMPORTS) and _key(one) <= _key(new)), None)
    following = next((one for one in head if isinstance(one, IMPORTS) and _key(one) > _key(new)), None)
    if following is not None and _section(following) == _section(new) != (_section(previous) if previous is not None else -1):
        return _insertion(_first_line(outline, following), f"{line}\n")  # the first of its kind
    if previous is None:
        previous = next((one for one in head[:1] if _is_docstring(one)), None)
    if previous is None:
        first = body[0] if body else None
        gap = "\n" if isinstance(first, IMPORTS) and _section(first) != _section(new) else ""
        return _insertion(_first_line(outline, first) if first is not None else len(outline.lines) + 1, f"{line}\n{gap}")
    gap = "\n" if not isinstance(previous, IMPORTS) or _section(previous) != _section(new) else ""
    return _insertion(_line_after(outline, previous), f"{gap}{line}\n")


def helper_edit(outline: Outline, source: str) -> Edit:
    """The edit that adds a function of module level after the imports, two empty lines around it (or a constant, one before it)."""
    head = _head(outline.tree.body)
    body = outline.tree.body
    if not head:
        return _insertion(_first_line(outline, body[0]) if body else len(outline.lines) + 1, f"{source.rstrip()}\n\n\n")
    line = _line_after(outline, head[-1])
    rest = outline.lines[line - 1 :]
    empty = next((number for number, text in enumerate(rest) if text.strip()), 2)
    before = "\n" if isinstance(ast.parse(source).body[0], ast.Assign) else "\n\n"
    return _insertion(line, f"{before}{source.rstrip()}\n" + "\n" * (2 - empty))


def _insertion(line: int, text: str) -> Edit:
    return Edit(Span(line, 1, line, 1), text)


def _head(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The docstring and the imports with which a module begins, guarded ones (`if TYPE_CHECKING:`, `try:`) among them."""
    head: list[ast.stmt] = []
    for one in body:
        if not (isinstance(one, IMPORTS) or (not head and _is_docstring(one)) or _only_imports(one)):
            break
        head.append(one)
    return head


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _only_imports(node: ast.stmt) -> bool:
    if isinstance(node, ast.If):
        return all(isinstance(one, (*IMPORTS, ast.Pass)) or _only_imports(one) for one in (*node.body, *node.orelse))
    if isinstance(node, ast.Try):
        return any(isinstance(one, IMPORTS) for one in node.body)
    return False


def _section(node: ast.stmt) -> int:
    """`__future__`, the standard library, the rest, relative imports: the usual order."""
    if isinstance(node, ast.ImportFrom) and node.level:
        return 3
    root = _module(node).partition(".")[0]
    return 0 if root == "__future__" else 1 if root in sys.stdlib_module_names else 2


def _key(node: ast.stmt) -> tuple[int, bool, str]:
    return _section(node), isinstance(node, ast.ImportFrom), _module(node)


def _module(node: ast.stmt) -> str:
    if isinstance(node, ast.ImportFrom):
        return node.module or ""
    return node.names[0].name if isinstance(node, ast.Import) else ""


def _line_after(outline: Outline, statement: ast.stmt) -> int:
    """The line after a statement, and after all that share its last line."""
    end = statement.end_lineno or statement.lineno
    for other in outline.tree.body:
        if other.lineno == end and (other.end_lineno or end) > end:
            end = other.end_lineno or end
    while end < len(outline.lines) and outline.lines[end - 1].endswith("\\"):
        end += 1
    return end + 1


def _first_line(outline: Outline, statement: ast.stmt) -> int:
    """The line at which a statement begins, with its decorators."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])
