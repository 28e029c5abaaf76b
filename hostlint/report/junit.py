"""JUnit's XML: a failed case a finding, an error a file that could not be read, one passed case where there is nothing to say."""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

if TYPE_CHECKING:
    from hostlint.model import FileError, Finding
    from hostlint.report.base import Report

# What XML 1.0 has no way to hold.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(report: Report) -> str:
    return "".join(f"{line}\n" for line in _lines(report))


def _lines(report: Report) -> Iterator[str]:
    findings, errors = report.result.findings, report.result.errors
    totals = f'tests="{max(1, len(findings) + len(errors))}" failures="{len(findings)}" errors="{len(errors)}"'
    yield '<?xml version="1.0" encoding="utf-8"?>'
    yield f'<testsuites name="hostlint" {totals}>'
    yield f'  <testsuite name="hostlint" {totals} skipped="0">'
    for finding in findings:
        yield from _finding(finding)
    for error in errors:
        yield from _error(error)
    if not findings and not errors:
        yield '    <testcase name="no findings" classname="hostlint"/>'
    yield "  </testsuite>"
    yield "</testsuites>"


def _finding(finding: Finding) -> Iterator[str]:
    span = finding.span
    name = f"{finding.code} {finding.name} at {finding.path}:{span.line}:{span.column}"
    yield _opening(name, finding.path, span.line)
    details = f"{finding.path}:{span.line}:{span.column}: {finding.message}\n{finding.kind_evidence}".rstrip()
    yield f"      <failure type={_attribute(finding.severity.value)} message={_attribute(finding.message)}>{_text(details)}</failure>"
    yield "    </testcase>"


def _error(error: FileError) -> Iterator[str]:
    place = f"{error.path}:{error.line}"
    yield _opening(place, error.path, error.line)
    yield f"      <error type=\"input\" message={_attribute(error.message)}>{_text(f'{place}: {error.message}')}</error>"
    yield "    </testcase>"


def _opening(name: str, path: str, line: int) -> str:
    return f'    <testcase name={_attribute(name)} classname={_attribute(path)} file={_attribute(path)} line="{line}">'


def _attribute(text: str) -> str:
    return quoteattr(_FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text))


def _text(text: str) -> str:
    return escape(_FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text))
