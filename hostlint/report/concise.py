"""One line a finding, `path:line:column: CODE name message`."""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hostlint.report.style import SEVERITY_STYLES, Line, write

if TYPE_CHECKING:
    from hostlint.report.base import Report


def render(report: Report) -> str:
    return write(_lines(report), report.coloured)


def _lines(report: Report) -> Iterator[Line]:
    for finding in report.result.findings:
        place = f"{finding.path}:{finding.span.line}:{finding.span.column}: "
        yield [(place, ""), (finding.code, SEVERITY_STYLES[finding.severity.value]), (f" {finding.name} {_one_line(finding.message)}", "")]
    for error in report.result.errors:
        yield [(f"{error.path}:{error.line}:1: ", ""), ("error", SEVERITY_STYLES["error"]), (f": {_one_line(error.message)}", "")]


def _one_line(text: str) -> str:
    return " ".join(text.split())
