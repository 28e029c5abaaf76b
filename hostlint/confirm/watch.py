"""From a scan's findings to what a run has to watch: the lines of findings, and the bodies of the step loops that heat them."""
from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from hostlint.model import HeatLevel
from hostlint.runtime_checks.confirm.plan import Plan

if TYPE_CHECKING:
    from hostlint.model import Finding

REDONE = "HL3"
V = TypeVar("V", int, tuple[int, int], tuple[int, int, int])


def digest(file: Path) -> str:
    """Of a file's bytes, to tell later whether it has changed; empty where it cannot be read."""
    try:
        return blake2b(file.read_bytes(), digest_size=16).hexdigest()
    except OSError:
        return ""


@dataclass(frozen=True)
class Watch:
    """`working` is the folder that the findings' paths are relative to; `files` are the scanned ones."""

    working: Path
    files: tuple[Path, ...]
    findings: tuple[Finding, ...]

    def plan(self, device: str, warmup: int) -> Plan:
        lines: dict[str, set[int]] = {}
        loops: dict[str, set[tuple[int, int, int]]] = {}
        redone: dict[str, set[tuple[int, int]]] = {}
        for finding in self.findings:
            path, span = self.real(finding.path), finding.span
            lines.setdefault(path, set()).update(range(span.line, span.end_line + 1))
            if finding.code.startswith(REDONE):
                redone.setdefault(path, set()).add((span.line, span.end_line))
            loop = self.loop_of(finding)
            if loop is not None:
                loops.setdefault(loop[0], set()).add((loop[1], *self.loops.head(*loop)))
        return Plan(device, warmup, tuple(self.real(str(file)) for file in self.files), _sorted(lines), _sorted(loops), _sorted(redone))

    def real(self, path: str) -> str:
        return str((self.working / path).resolve())

    def loop_of(self, finding: Finding) -> tuple[str, int] | None:
        """The file of the loop that makes a finding hot, and the first line of its body; else of the loop in which it stands."""
        chain = finding.heat.chain
        if chain:
            return self._loop(chain[0].path, chain[0].line)
        return self._loop(finding.path, finding.span.line) if finding.heat.level >= HeatLevel.REQUEST else None

    def _loop(self, shown: str, line: int) -> tuple[str, int] | None:
        path = self.real(shown)
        body = self.loops.body(path, line)
        return None if body is None else (path, body)

    @cached_property
    def loops(self) -> Loops:
        return Loops()


class Loops:
    """The loops of files, by line."""

    def __init__(self) -> None:
        self._files: dict[str, list[_Loop]] = {}

    def body(self, path: str, line: int) -> int | None:
        """The first line of the body of the innermost loop statement that holds a line."""
        around = [loop for loop in self._of(path) if loop.body and loop.first <= line <= loop.last]
        return around[-1].body if around else None

    def around(self, path: str, line: int) -> bool:
        """Whether a line lies in a loop statement or a comprehension."""
        return any(loop.first <= line <= loop.last for loop in self._of(path))

    def head(self, path: str, body: int) -> tuple[int, int]:
        """The first and last line of what runs before each pass of the loop with that body; 0 and 0 where nothing does."""
        return next((loop.head, loop.head_end) for loop in self._of(path) if loop.body == body)

    def _of(self, path: str) -> list[_Loop]:
        if path not in self._files:
            self._files[path] = sorted(_loops(path))
        return self._files[path]


class _Loop(NamedTuple):
    """Lines of a loop statement, or of a comprehension, which has no body (0)."""

    first: int
    last: int
    body: int
    head: int
    head_end: int


def _loops(path: str) -> Iterable[_Loop]:
    try:
        tree = ast.parse(Path(path).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, (ast.For, ast.AsyncFor, ast.While)) and node.end_lineno is not None:
            head, end = _head(node)
            code = [one for one in node.body if not _is_text(one)] or node.body
            begin = code[0] if head else next(filter(_runs_once, code), code[0])
            yield _Loop(node.lineno, node.end_lineno, begin.lineno, *((head, end) if end < begin.lineno else (0, 0)))
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            yield _Loop(node.lineno, node.end_lineno or node.lineno, 0, 0, 0)


def _head(node: ast.For | ast.AsyncFor | ast.While) -> tuple[int, int]:
    if isinstance(node, ast.While):
        return (0, 0) if isinstance(node.test, ast.Constant) else (node.lineno, node.test.end_lineno or node.lineno)
    return node.lineno, max(node.target.end_lineno or 0, node.iter.end_lineno or 0)


def _is_text(statement: ast.stmt) -> bool:
    """A text that stands alone runs no code."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _runs_once(statement: ast.stmt) -> bool:
    """Whether a pass comes to the statement's first line one time only, as far as lines show that."""
    return isinstance(statement, (ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign)) and statement.lineno == statement.end_lineno


def _sorted(sets: dict[str, set[V]]) -> dict[str, list[V]]:
    return {path: sorted(values) for path, values in sorted(sets.items())}
