"""The JSON report, version 1: the form that other programs may rely on."""
from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hostlint.report.base import TOOL, Report

if TYPE_CHECKING:
    from hostlint.model import FileError, Finding, Fix, Summary

VERSION = 1


def render(report: Report) -> str:
    result = report.result
    document = {
        "version": VERSION,
        "tool": TOOL,
        "findings": [finding_object(finding) for finding in result.findings],
        "unpredicted": [],
        "errors": [error_object(error) for error in result.errors],
        "summary": _summary_object(result.summary),
    }
    return json.dumps(document, indent=1) + "\n"


def finding_object(finding: Finding) -> dict[str, object]:
    return {
        "code": finding.code,
        "name": finding.name,
        "path": finding.path,
        "line": finding.span.line,
        "column": finding.span.column,
        "end_line": finding.span.end_line,
        "end_column": finding.span.end_column,
        "message": finding.message,
        "severity": finding.severity.value,
        "confidence": finding.confidence.label,
        "function": finding.function,
        "heat": {
            "level": finding.heat.level.label,
            "chain": [{"path": link.path, "line": link.line, "function": link.function} for link in finding.heat.chain],
        },
        "kind_evidence": finding.kind_evidence,
        "fix": _fix_object(finding.fix) if finding.fix else None,
        "confirmed": None,
    }


def error_object(error: FileError) -> dict[str, object]:
    return {"path": error.path, "line": error.line, "message": error.message}


def _fix_object(fix: Fix) -> dict[str, object]:
    return {
        "applicability": fix.applicability.value,
        "message": fix.message,
        "edits": [
            {
                "line": edit.span.line,
                "column": edit.span.column,
                "end_line": edit.span.end_line,
                "end_column": edit.span.end_column,
                "text": edit.text,
            }
            for edit in fix.edits
        ],
    }


def _summary_object(summary: Summary) -> dict[str, int]:
    return {
        "files": summary.files,
        "lines": summary.lines,
        "findings": summary.findings,
        "suppressed": summary.suppressed,
        "baselined": summary.baselined,
    }
