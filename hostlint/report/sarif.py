"""SARIF 2.1.0, as code scanning services read it."""
from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING
from urllib.parse import quote

from hostlint.model import ChainLink, FileError, Finding, Fix, Severity, Span
from hostlint.report.verdict import verdict
from hostlint.version import VERSION

if TYPE_CHECKING:
    from hostlint.fingerprint import Fingerprint
    from hostlint.report.base import Report
    from hostlint.rule import Rule

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_BASE = "%SRCROOT%"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}
Object = dict[str, object]


def render(report: Report) -> str:
    used = [rule for rule in report.rules if any(finding.code == rule.code for finding in report.result.findings)]
    run: Object = {
        "tool": {"driver": {"name": "hostlint", "version": VERSION, "rules": [_rule(rule) for rule in used]}},
        "automationDetails": {"id": "hostlint/"},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_BASE: {"description": {"text": "The working directory of the scan."}}},
        "invocations": [
            {
                "executionSuccessful": not report.result.errors,
                "toolExecutionNotifications": [_notification(error) for error in report.result.errors],
            }
        ],
        "results": _results(report, [rule.code for rule in used]),
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _rule(rule: Rule) -> Object:
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.summary},
        "help": {"text": rule.page or rule.summary, "markdown": rule.page or rule.summary},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"tags": ["performance"]},
    }


def _results(report: Report, codes: list[str]) -> list[Object]:
    seen: Counter[Fingerprint] = Counter()
    results: list[Object] = []
    for finding in report.result.findings:
        fingerprint = report.fingerprints.of(finding)
        result = _result(finding, codes.index(finding.code) if finding.code in codes else -1)
        result["partialFingerprints"] = {"hostlintStatement/v1": fingerprint.digest(seen[fingerprint])}
        if report.against_baseline:
            result["baselineState"] = "new"
        seen[fingerprint] += 1
        results.append(result)
    return results


def _result(finding: Finding, index: int) -> Object:
    result: Object = {
        "ruleId": finding.code,
        "level": _LEVELS[finding.severity],
        "message": {"text": finding.message},
        "locations": [_location(finding.path, finding.span, finding.function)],
        "properties": {
            "confidence": finding.confidence.label,
            "heat": finding.heat.level.label,
            "kindEvidence": finding.kind_evidence,
            **({"run": verdict(finding.confirmed)} if finding.confirmed else {}),
        },
    }
    if index >= 0:
        result["ruleIndex"] = index
    if finding.heat.chain:
        steps = [{"location": _link(link)} for link in finding.heat.chain]
        steps.append({"location": _location(finding.path, finding.span, finding.function, finding.message)})
        result["codeFlows"] = [{"message": {"text": "from the hot loop to the finding"}, "threadFlows": [{"locations": steps}]}]
    if finding.fix:
        result["fixes"] = [_fix(finding.path, finding.fix)]
    return result


def _artifact(path: str) -> Object:
    return {"uri": quote(path, errors="surrogateescape"), "uriBaseId": _BASE}


def _region(span: Span) -> Object:
    return {"startLine": span.line, "startColumn": span.column, "endLine": span.end_line, "endColumn": span.end_column}


def _location(path: str, span: Span, function: str, message: str = "") -> Object:
    location: Object = {"physicalLocation": {"artifactLocation": _artifact(path), "region": _region(span)}}
    if function:
        location["logicalLocations"] = [{"fullyQualifiedName": function, "kind": "function"}]
    if message:
        location["message"] = {"text": message}
    return location


def _link(link: ChainLink) -> Object:
    return {
        "physicalLocation": {"artifactLocation": _artifact(link.path), "region": {"startLine": link.line}},
        "logicalLocations": [{"fullyQualifiedName": link.function, "kind": "function"}],
        "message": {"text": f"in {link.function}"},
    }


def _fix(path: str, fix: Fix) -> Object:
    replacements = [{"deletedRegion": _region(edit.span), "insertedContent": {"text": edit.text}} for edit in fix.edits]
    return {
        "description": {"text": f"{fix.message} ({fix.applicability.value})"},
        "artifactChanges": [{"artifactLocation": _artifact(path), "replacements": replacements}],
    }


def _notification(error: FileError) -> Object:
    region = {"startLine": error.line}
    return {
        "level": "error",
        "message": {"text": error.message},
        "locations": [{"physicalLocation": {"artifactLocation": _artifact(error.path), "region": region}}],
    }
