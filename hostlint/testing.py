"""Proves a rule's examples with the real engine: flagged on exactly the marked lines, and silent on the corrected text."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hostlint.model import Finding
    from hostlint.rule import Example, Rule

EXAMPLE_PATH = "example.py"
_MARK = re.compile(r"\s*# expect$", re.MULTILINE)


def check_example(rule: Rule, example: Example) -> list[str]:
    """What the engine says other than the example does, in words; nothing where they agree."""
    return [*_faulty(rule, example), *_corrected(example)]


def unmarked(text: str) -> str:
    """The program of an example's text: the marks are taken off, everything before them keeps its place."""
    return _MARK.sub("", text)


def marked_lines(text: str) -> frozenset[int]:
    return frozenset(number for number, line in enumerate(text.splitlines(), 1) if _MARK.search(line))


def _faulty(rule: Rule, example: Example) -> Iterator[str]:
    findings, troubles = _scan(example.bad)
    yield from (f"bad, {trouble}" for trouble in troubles)
    marked = marked_lines(example.bad)
    if not marked:
        yield "bad: no line is marked with # expect"
    own = {finding.span.line for finding in findings if finding.code == rule.code}
    yield from (f"bad, line {line}: {rule.code} {rule.name} is missing" for line in sorted(marked - own))
    for finding in findings:
        on_mark = finding.span.line in marked
        allowed = on_mark and finding.code in (rule.code, *example.also)
        if not allowed and finding.code[:3] == rule.code[:3]:
            yield f"bad, {_words(finding)}"


def _corrected(example: Example) -> Iterator[str]:
    findings, troubles = _scan(example.good)
    yield from (f"good, {trouble}" for trouble in troubles)
    yield from (f"good, {_words(finding)}" for finding in findings)


def _scan(text: str) -> tuple[list[Finding], list[str]]:
    from hostlint.scan import scan_text  # not for those who only ask for an example's text

    findings, errors = scan_text(unmarked(text), EXAMPLE_PATH)
    return findings, [f"line {error.line}: {error.message}" for error in errors]


def _words(finding: Finding) -> str:
    return f"line {finding.span.line}: {finding.code} {finding.name} is not wanted: {finding.message}"
