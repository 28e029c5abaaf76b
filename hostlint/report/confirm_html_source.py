"""The source lines around a place of a record, where the file is still the one that was scanned."""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hostlint.confirm.watch import digest
from hostlint.project import find_root
from hostlint.report.confirm_html_elements import Markup, join, tag
from hostlint.sources import Sources

if TYPE_CHECKING:
    from hostlint.confirm.record import Record

AROUND = 2  # lines before and after
MOST_LINES = 8  # of a place that goes over many
WIDEST = 180
_END = 1_000_000  # a column behind every line


@dataclass(frozen=True, slots=True)
class Piece:
    """What is marked: from a place to a place, as lines and columns of a finding."""

    line: int
    column: int
    end_line: int
    end_column: int


class Code:
    """Looks for the record's files in the working directory and in the project. One whose content is not what was scanned is not shown:
    so a record can put no other file into a page."""

    def __init__(self, record: Record) -> None:
        working = Path.cwd()
        self._digests = record.digests
        self._folders = (working, find_root((), working))
        self._sources = Sources(working)
        self._found: dict[str, Path | None] = {}

    def finding(self, finding: dict[str, Any]) -> tuple[Markup, Markup] | None:
        """A finding's first line, and the lines around it, its expression marked; None where the file is not at hand as it was."""
        return self._shown(finding["path"], Piece(finding["line"], finding["column"], finding["end_line"], finding["end_column"]))

    def place(self, path: str, line: int) -> tuple[Markup, Markup] | None:
        """The same of a whole line of a file, by its name in the record."""
        return self._shown(path, Piece(line, 1, line, _END))

    def _shown(self, path: str, piece: Piece) -> tuple[Markup, Markup] | None:
        lines = self._lines(path)
        if not 0 < piece.line <= len(lines):
            return None
        last = min(piece.end_line, piece.line + MOST_LINES - 1, len(lines))
        numbers = [*range(max(1, piece.line - AROUND), min(len(lines), last + AROUND) + 1)]
        while not lines[numbers[0] - 1].strip() and numbers[0] < piece.line:
            del numbers[0]
        while not lines[numbers[-1] - 1].strip() and numbers[-1] > last:
            del numbers[-1]
        margin = min((_indent(lines[number - 1]) for number in numbers if lines[number - 1].strip()), default=0)
        block = tag("pre", join(_numbered(number, lines[number - 1], margin, piece, last) for number in numbers), class_="code")
        first = lines[piece.line - 1]
        return tag("code", *_marked(first, _indent(first), *_edges(first, piece.line, piece))), block

    def _lines(self, path: str) -> list[str]:
        file = self._file(path)
        return [] if file is None else self._sources.lines(str(file))

    def _file(self, path: str) -> Path | None:
        if path not in self._found:
            wanted = self._digests.get(path)
            files = (folder / path for folder in self._folders)
            self._found[path] = next((file for file in files if wanted and digest(file) == wanted), None)
        return self._found[path]


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _edges(text: str, number: int, piece: Piece) -> tuple[int, int]:
    """Where the marked part of a line begins and ends."""
    start = piece.column - 1 if number == piece.line else 0
    end = piece.end_column - 1 if number == piece.end_line else len(text)
    return max(start, _indent(text)), min(end, len(text.rstrip()))


def _numbered(number: int, text: str, margin: int, piece: Piece, last: int) -> Markup:
    inside = piece.line <= number <= last
    pieces = _marked(text, margin, *(_edges(text, number, piece) if inside else (0, 0)))
    return tag("span", tag("b", str(number), aria_hidden="true"), tag("code", *pieces), class_="hit" if inside else None)


def _marked(text: str, margin: int, start: int, end: int) -> list[str]:
    """A line without its margin, cut where it is too wide, a part of it marked."""
    widest = margin + WIDEST
    start, end = (max(margin, min(edge, widest)) for edge in (start, end))
    mark = tag("mark", text[start:end]) if end > start else ""
    return [text[margin:start], mark, text[max(start, end) : widest], "…" if len(text) > widest else ""]
