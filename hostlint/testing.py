"""Proves a rule's examples with the real engine: flagged on exactly the marked lines, silent on the corrected text, and mended into it."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hostlint.model import Applicability

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hostlint.model import Finding
    from hostlint.rule import Example, Rule

EXAMPLE_PATH = "example.py"
_MARK = re.compile(r"\s*# expect$", re.MULTILINE)


def check_example(rule: Rule, example: Example) -> list[str]:
    """What the engine says other than the example does, in words; nothing where they agree."""
    return [*_faulty(rule, example), *_corrected(example), *_mended(rule, example)]


def fixed(rule: Rule, text: str, review: bool = False) -> str:
    """What the rule's fixes, applied until none is left, make of a program; the other rules' are left alone."""
    from hostlint.fix.once import fixed_text

    return fixed_text(unmarked(text), EXAMPLE_PATH, frozenset({rule.code}), review)


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


def _mended(rule: Rule, example: Example) -> Iterator[str]:
    """What the claim about fixes says other than the engine does."""
    exact, both = fixed(rule, example.bad), fixed(rule, example.bad, review=True)
    untouched = unmarked(example.bad)
    if example.fix is None:
        if both != untouched:
            yield f"bad: a fix of {rule.name} changes it, which the example does not claim (fix=...):\n{_difference(untouched, both)}"
        return
    made = exact if example.fix is Applicability.EXACT else both
    if made != example.good:
        yield f"bad: its {example.fix.value} fix does not give good:\n{_difference(example.good, made)}"
    if example.fix is Applicability.REVIEW and exact != untouched:
        yield f"bad: an exact fix changes it too:\n{_difference(untouched, exact)}"
    if example.fix is Applicability.EXACT and not example.trials:
        yield "an exact fix needs trials: expressions that run the program, whose results must be the same"


def _difference(wanted: str, made: str) -> str:
    from hostlint.fix.diff import unified

    return unified(EXAMPLE_PATH, wanted, made)


def _scan(text: str) -> tuple[list[Finding], list[str]]:
    from hostlint.scan import scan_text  # not for those who only ask for an example's text

    findings, errors = scan_text(unmarked(text), EXAMPLE_PATH)
    return findings, [f"line {error.line}: {error.message}" for error in errors]


def _words(finding: Finding) -> str:
    return f"line {finding.span.line}: {finding.code} {finding.name} is not wanted: {finding.message}"
