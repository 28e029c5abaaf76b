"""A piece of source with the finding underlined."""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hostlint.report.style import GUTTER, SEVERITY_STYLES, Line, cells, visible

if TYPE_CHECKING:
    from hostlint.model import Finding
    from hostlint.sources import Sources

_MOST_LINES = 5  # of a finding that goes over many
_WIDEST = 160
_BEFORE = 60  # characters kept before the finding where a line is cut


def frame(finding: Finding, sources: Sources, margin: int) -> Iterator[Line]:
    """The finding's lines, numbers right-aligned to `margin`; nothing where the source is gone."""
    span = finding.span
    last = min(span.end_line, span.line + _MOST_LINES - 1)
    style = SEVERITY_STYLES[finding.severity.value]
    empty: Line = [(f"{'':{margin}} |", GUTTER)]
    if not any(sources.line(finding.path, number) for number in range(span.line, last + 1)):
        return
    yield empty
    for number in range(span.line, last + 1):
        text = sources.line(finding.path, number)
        start = span.column - 1 if number == span.line else len(text) - len(text.lstrip())
        end = min(span.end_column - 1, len(text)) if number == span.end_line else len(text.rstrip())
        before, marked, after = _cut(text, start, max(end, start + 1))
        yield [(f"{number:>{margin}} | ", GUTTER), (f"{before}{marked}{after}".rstrip(), "")]
        yield [(f"{'':{margin}} | ", GUTTER), (" " * cells(before), ""), ("^" * max(1, cells(marked)), style)]
    if last < span.end_line:
        yield [(f"{'...':>{margin}}", GUTTER)]


def _cut(text: str, start: int, end: int) -> tuple[str, str, str]:
    before, marked, after = visible(text[:start]), visible(text[start:end]), visible(text[end:])
    if len(before) + len(marked) + len(after) > _WIDEST:
        before = before if len(before) <= _BEFORE else f"…{before[-_BEFORE:]}"
        room = _WIDEST - len(before)
        marked = marked if len(marked) <= room else f"{marked[: room - 1]}…"
        after = after if len(after) <= room - len(marked) else f"{after[: max(0, room - len(marked))]}…"
    return before, marked, after
