"""Workflow commands that GitHub shows as annotations beside the changed lines."""
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hostlint.model import FileError, Finding
    from hostlint.report.base import Report

_LEVELS = {"error": "error", "warning": "warning", "note": "notice"}


def render(report: Report) -> str:
    lines = [_finding(finding) for finding in report.result.findings] + [_error(error) for error in report.result.errors]
    return "".join(f"{line}\n" for line in lines)


def _finding(finding: Finding) -> str:
    span = finding.span
    properties: dict[str, str | int] = {
        "title": f"hostlint ({finding.code} {finding.name})",
        "file": finding.path,
        "line": span.line,
        "endLine": span.end_line,
        "col": span.column,
        "endColumn": span.end_column,
    }
    where = f"{finding.path}:{span.line}:{span.column}: {finding.code}"
    return _command(_LEVELS[finding.severity.value], properties, f"{where} {finding.message}")


def _error(error: FileError) -> str:
    return _command("error", {"title": "hostlint", "file": error.path, "line": error.line}, f"{error.path}:{error.line}: {error.message}")


def _command(level: str, properties: dict[str, str | int], message: str) -> str:
    listed = ",".join(f"{key}={_escape(str(value)).replace(':', '%3A').replace(',', '%2C')}" for key, value in properties.items())
    return f"::{level} {listed}::{_escape(message)}"


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
