"""The JSON report, version 1: the form that other programs may rely on."""
from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from hostlint.report.base import TOOL, Report

if TYPE_CHECKING:
    from hostlint.confirm.join import Confirmed
    from hostlint.confirm.record import Event
    from hostlint.model import FileError, Finding, Fix, Summary

VERSION = 1


def render(report: Report) -> str:
    result = report.result
    document = {
        "version": VERSION,
        "tool": TOOL,
        "findings": [finding_object(finding) for finding in result.findings],
        "unpredicted": [event_object(event) for event in report.unpredicted],
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
        "confirmed": confirmed_object(finding.confirmed) if finding.confirmed else None,
    }


def confirmed_object(confirmed: Confirmed) -> dict[str, object]:
    """`confirmed` of the JSON report; times are null where they were not measured."""
    blocked = confirmed.blocked_s
    return {
        "verdict": confirmed.verdict.value,
        "count": confirmed.count,
        "steps": confirmed.steps or None,
        "per_step": confirmed.per_step,
        "blocked_ms": None if blocked is None else round(blocked * 1e3, 3),
        "gpu_idle_ms": None,
        "expected_saving_ms": None,
        "why": confirmed.why or None,
        "ranks": dict(confirmed.ranks) or None,
    }


def event_object(event: Event) -> dict[str, object]:
    """An event of a run by itself: where, what, how often, and the libraries' frames below it."""
    return {
        "kind": event.kind,
        "call": event.call,
        **asdict(event.place),
        "stack": [asdict(frame) for frame in event.stack],
        "count": event.count,
        "waits": event.waits,
        "blocked_ms": None if event.blocked_s is None else round(event.blocked_s * 1e3, 3),
        "bytes": event.bytes,
        "threads": list(event.threads),
        "ranks": event.ranks,
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
