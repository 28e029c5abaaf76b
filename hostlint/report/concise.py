"""One line a finding, `path:line:column: CODE name message`."""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hostlint.report.confirm_words import plural
from hostlint.report.style import SEVERITY_STYLES, Line, write
from hostlint.report.verdict import verdict

if TYPE_CHECKING:
    from hostlint.model import Finding
    from hostlint.report.base import Report


def render(report: Report) -> str:
    return write(_lines(report), report.coloured)


def _lines(report: Report) -> Iterator[Line]:
    for finding in report.result.findings:
        place = f"{finding.path}:{finding.span.line}:{finding.span.column}: "
        words = f" {finding.name} {_one_line(finding.message)}{_run(finding)}"
        yield [(place, ""), (finding.code, SEVERITY_STYLES[finding.severity.value]), (words, "")]
    for event in report.unpredicted:
        where = f"{event.place.path}:{event.place.line}:1: "
        yield [(where, ""), ("unpredicted", "bold magenta"), (f" {event.kind} {event.call}, {plural(event.count, 'time')} in the run", "")]
    for error in report.result.errors:
        yield [(f"{error.path}:{error.line}:1: ", ""), ("error", SEVERITY_STYLES["error"]), (f": {_one_line(error.message)}", "")]


def _run(finding: Finding) -> str:
    return f" [{verdict(finding.confirmed)}]" if finding.confirmed is not None else ""


def _one_line(text: str) -> str:
    return " ".join(text.split())
