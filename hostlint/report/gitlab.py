"""GitLab's code quality report: an issue a finding, with a fingerprint that survives edits elsewhere."""
from __future__ import annotations

import json
from collections import Counter
from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hostlint.fingerprint import Fingerprint
    from hostlint.model import FileError
    from hostlint.report.base import Report

_SEVERITIES = {"error": "critical", "warning": "major", "note": "info"}


def render(report: Report) -> str:
    return json.dumps([*_issues(report), *(_error(error) for error in report.result.errors)], indent=1) + "\n"


def _issues(report: Report) -> list[dict[str, object]]:
    seen: Counter[Fingerprint] = Counter()
    issues: list[dict[str, object]] = []
    for finding in report.result.findings:
        fingerprint = report.fingerprints.of(finding)
        span = finding.span
        issues.append(
            {
                "type": "issue",
                "check_name": finding.code,
                "description": f"{finding.code} {finding.name}: {finding.message}",
                "categories": ["Performance"],
                "severity": _SEVERITIES[finding.severity.value],
                "fingerprint": fingerprint.digest(seen[fingerprint]),
                "location": {"path": finding.path, "lines": {"begin": span.line, "end": span.end_line}},
            }
        )
        seen[fingerprint] += 1
    return issues


def _error(error: FileError) -> dict[str, object]:
    digest = blake2b(f"{error.path}\0{error.message}".encode(errors="surrogateescape"), digest_size=16)
    return {
        "type": "issue",
        "check_name": "input-error",
        "description": error.message,
        "categories": ["Bug Risk"],
        "severity": "blocker",
        "fingerprint": digest.hexdigest(),
        "location": {"path": error.path, "lines": {"begin": error.line, "end": error.line}},
    }
