"""Where the calls of a function stand in its text: worked out for the few calls that a finding needs, the graph keeps only lines."""
from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from hostlint.facts.chains import chain
from hostlint.facts.memos import none_test
from hostlint.facts.trees import walk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hostlint.facts.schema import Call


class Spot(NamedTuple):
    """A call's span, 1-based in characters with an exclusive end, and the first and last line of its statement."""

    span: tuple[int, int, int, int]
    statement: tuple[int, int]
    subject: str
    chosen_by: frozenset[str]  # names that a test of the branch around it, in the innermost loop, compares for equality
    fills: frozenset[str] = frozenset()  # names that a branch around it tests for None and binds: it makes up for what was not given


class Spans:
    """The calls of one file's text, by line and chain, in the order in which they are lowered."""

    def __init__(self, text: str) -> None:
        self._lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._spots: dict[tuple[int, str], list[Spot]] = {}
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError):
            return
        self._collect(tree, (0, 0), frozenset(), frozenset())

    def of(self, call: Call, calls: Sequence[Call]) -> Spot | None:
        """The place of one of a function's calls; None where the text holds it in another order than the graph."""
        spots = self._spots.get((call.line, call.chain), [])
        alike = [other for other in calls if other.line == call.line and other.chain == call.chain]
        return spots[alike.index(call)] if len(spots) == len(alike) else None

    def _collect(self, node: ast.AST, statement: tuple[int, int], chosen_by: frozenset[str], fills: frozenset[str]) -> None:
        if isinstance(node, ast.stmt):
            statement = (node.lineno, _last_line(node))
        if isinstance(node, (ast.For, ast.AsyncFor, ast.While, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            chosen_by = frozenset()
        elif isinstance(node, (ast.If, ast.IfExp)):
            chosen_by |= _compared(node.test)
        elif isinstance(node, ast.Match):
            chosen_by |= _names(node.subject)
        missing = _missing(node) if isinstance(node, ast.If) else ""
        for child in ast.iter_child_nodes(node):
            inside = isinstance(node, ast.If) and bool(missing) and child in node.body
            self._collect(child, statement, chosen_by, fills | {missing} if inside else fills)
        if isinstance(node, ast.Call):
            self._spots.setdefault((node.lineno, chain(node.func)), []).append(self._spot(node, statement, chosen_by, fills))

    def _spot(self, node: ast.Call, statement: tuple[int, int], chosen_by: frozenset[str], fills: frozenset[str]) -> Spot:
        end_line, end = node.end_lineno or node.lineno, node.end_col_offset or 0
        span = (node.lineno, self._column(node.lineno, node.col_offset), end_line, self._column(end_line, end))
        return Spot(span, statement, ast.unparse(_subject(node)), chosen_by, fills)

    def _column(self, line: int, offset: int) -> int:
        return len(self._lines[line - 1].encode()[:offset].decode(errors="replace")) + 1



class Places:
    """The calls of a file whose text is read once something asks."""

    def __init__(self, text_of: Callable[[int], str], file: int) -> None:
        self._text_of = text_of
        self._file = file

    def __call__(self, call: Call, calls: Sequence[Call]) -> Spot | None:
        return self._spans.of(call, calls)

    def text_of(self, file: int) -> str:
        """The text of any file of the project."""
        return self._text_of(file)

    @cached_property
    def _spans(self) -> Spans:
        return Spans(self._text_of(self._file))


def _subject(node: ast.Call) -> ast.expr:
    return node.func.value if isinstance(node.func, ast.Attribute) else node.func


def _missing(node: ast.If) -> str:
    """The name that `if x is None:` tests and its branch binds; "" for other branches."""
    name = none_test(node.test)
    if not name or not (isinstance(node.test, ast.Compare) and isinstance(node.test.ops[0], ast.Is)):
        return ""
    stored = (part for statement in node.body for part in walk(statement) if isinstance(part, (ast.Name, ast.Attribute)))
    return name if any(isinstance(part.ctx, ast.Store) and chain(part) == name for part in stored) else ""


def _compared(test: ast.expr) -> frozenset[str]:
    equal = (ast.Eq, ast.Is, ast.In)
    parts = (part for part in walk(test) if isinstance(part, ast.Compare) and any(isinstance(op, equal) for op in part.ops))
    return frozenset(name for part in parts for name in _names(part))


def _names(node: ast.AST) -> frozenset[str]:
    return frozenset(part.id for part in walk(node) if isinstance(part, ast.Name))


def _last_line(statement: ast.stmt) -> int:
    body = getattr(statement, "body", None) or getattr(statement, "cases", None)
    if body and isinstance(body[0], ast.stmt):
        return max(statement.lineno, body[0].lineno - 1)
    return statement.end_lineno or statement.lineno
