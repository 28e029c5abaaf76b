"""From a scan's findings to what a run has to watch: the lines of findings, and the bodies of the step loops that heat them."""
from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from hostlint.runtime_checks.confirm.plan import Plan

if TYPE_CHECKING:
    from hostlint.model import ChainLink, Finding

REDONE = "HL3"
V = TypeVar("V", int, tuple[int, int])


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
        loops: dict[str, set[int]] = {}
        redone: dict[str, set[tuple[int, int]]] = {}
        for finding in self.findings:
            path, span = self.real(finding.path), finding.span
            lines.setdefault(path, set()).update(range(span.line, span.end_line + 1))
            if finding.code.startswith(REDONE):
                redone.setdefault(path, set()).add((span.line, span.end_line))
            loop = self.loop_of(finding)
            if loop is not None:
                loops.setdefault(loop[0], set()).add(loop[1])
        return Plan(device, warmup, tuple(self.real(str(file)) for file in self.files), _sorted(lines), _sorted(loops), _sorted(redone))

    def real(self, path: str) -> str:
        return str((self.working / path).resolve())

    def loop_of(self, finding: Finding) -> tuple[str, int] | None:
        """The file of the loop that makes a finding hot, and the first line of its body."""
        chain = finding.heat.chain
        return self._loop(chain[0]) if chain else None

    def _loop(self, link: ChainLink) -> tuple[str, int] | None:
        path = self.real(link.path)
        body = self.loops.body(path, link.line)
        return None if body is None else (path, body)

    @cached_property
    def loops(self) -> Loops:
        return Loops()


class Loops:
    """The loops of files, by line."""

    def __init__(self) -> None:
        self._files: dict[str, list[tuple[int, int, int]]] = {}

    def body(self, path: str, line: int) -> int | None:
        """The first line of the body of the innermost loop statement that holds a line."""
        if path not in self._files:
            self._files[path] = sorted(_loops(path))
        around = [loop for loop in self._files[path] if loop[0] <= line <= loop[1]]
        return around[-1][2] if around else None


def _loops(path: str) -> Iterable[tuple[int, int, int]]:
    try:
        tree = ast.parse(Path(path).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, (ast.For, ast.AsyncFor, ast.While)) and node.end_lineno is not None:
            yield (node.lineno, node.end_lineno, next((one for one in node.body if not _is_text(one)), node.body[0]).lineno)


def _is_text(statement: ast.stmt) -> bool:
    """A text that stands alone runs no code."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _sorted(sets: dict[str, set[V]]) -> dict[str, list[V]]:
    return {path: sorted(values) for path, values in sorted(sets.items())}
