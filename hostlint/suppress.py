"""Suppressions at work: which findings they cover, and what is to be said about the suppressions themselves (HL901 to HL904)."""
from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from hostlint.comments import Comments, HeatHint, Scope, Suppression
from hostlint.model import Confidence, Finding, Heat, HeatLevel, Severity, Span

UNUSED, WITHOUT_REASON, EXPIRED, MALFORMED = "HL901", "HL902", "HL903", "HL904"
OWN_FAMILY = "HL9"


@dataclass(frozen=True, slots=True)
class Catalogue:
    """What suppressions need to know about rules; `expand` raises ValueError for a selector that means nothing."""

    expand: Callable[[str], frozenset[str]]
    describe: Callable[[str], tuple[str, Severity]]  # code -> name, severity


@dataclass(frozen=True, slots=True)
class Outcome:
    kept: tuple[Finding, ...]  # those that nothing covers, and those about suppressions
    suppressed: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class _Active:
    """A suppression that holds, with the codes of each of its selectors."""

    said: Suppression
    codes: Mapping[str, frozenset[str]]
    used: set[str]  # selectors

    def covers(self, finding: Finding) -> bool:
        selectors = [name for name, codes in self.codes.items() if finding.code in codes]
        if finding.code.startswith(OWN_FAMILY):
            # Whoever means these says so, and no suppression is its own excuse.
            selectors = [name for name in selectors if _all_own(self.codes[name])]
            if finding.span == self.said.span:
                return False
        if not selectors or not _reaches(self.said, finding):
            return False
        self.used.update(selectors)
        return True


def apply(
    findings: Sequence[Finding], comments: Mapping[str, Comments], enabled: Collection[str], today: date, rules: Catalogue
) -> Outcome:
    """Part the findings of all files (at any heat, of any confidence) into covered and not; findings about suppressions join the latter.

    `enabled` are the codes that are on: a selector that also means rules that are off is not judged, for those might need it.
    """
    by_path: dict[str, list[Finding]] = {path: [] for path in comments}
    for finding in findings:
        by_path.setdefault(finding.path, []).append(finding)
    kept: list[Finding] = []
    suppressed: list[Finding] = []
    for path, here in by_path.items():
        said = comments.get(path)
        left, covered = _apply_to_file(path, here, said, enabled, today, rules) if said else (here, [])
        kept += left
        suppressed += covered
    return Outcome(tuple(kept), tuple(suppressed))


def _apply_to_file(
    path: str, findings: Sequence[Finding], said: Comments, enabled: Collection[str], today: date, rules: Catalogue
) -> tuple[list[Finding], list[Finding]]:
    active: list[_Active] = []
    faults = [_about(rules, MALFORMED, path, fault.span, fault.message) for fault in said.malformed]
    faults += [_about(rules, WITHOUT_REASON, path, *fault) for fault in _cold_without_reason(said)]
    for suppression in said.suppressions:
        holds, fault = _judge(suppression, today, rules)
        if holds:
            active.append(_Active(suppression, holds, set()))
        if fault:
            faults.append(_about(rules, fault[0], path, suppression.span, fault[1]))
    left, covered = _part([*findings, *faults], active)
    unused = [_about(rules, UNUSED, path, *fault) for one in active for fault in _unused(one, enabled)]
    late_left, late_covered = _part(unused, active)
    return left + late_left, covered + late_covered


def _judge(said: Suppression, today: date, rules: Catalogue) -> tuple[Mapping[str, frozenset[str]], tuple[str, str] | None]:
    """The codes of each selector, none where the suppression does not hold, and what is wrong with it as code and message."""
    try:
        codes = {name: rules.expand(name) for name in said.selectors or ("ALL",)}
    except ValueError as error:
        return {}, (MALFORMED, str(error))
    if said.until is not None and today > said.until:
        return {}, (EXPIRED, f"this suppression held until {said.until}: mend what it covers, or give it a new date")
    if not said.reason:
        return codes, (WITHOUT_REASON, "say why: the next reader cannot tell whether it is still right")
    return codes, None


def _part(findings: Iterable[Finding], active: Sequence[_Active]) -> tuple[list[Finding], list[Finding]]:
    left: list[Finding] = []
    covered: list[Finding] = []
    for finding in findings:
        # Every suppression that covers it counts as used: which of them came first would be chance.
        hits = [one.covers(finding) for one in active]
        (covered if any(hits) else left).append(finding)
    return left, covered


def _reaches(said: Suppression, finding: Finding) -> bool:
    first, last = finding.statement if finding.statement != (0, 0) else (finding.span.line, finding.span.end_line)
    start, end = said.lines
    if said.scope is Scope.FILE:
        return True
    if said.scope is Scope.BLOCK:
        return start <= first <= end
    return first <= start <= last or first == end


def _unused(one: _Active, enabled: Collection[str]) -> Iterator[tuple[Span, str]]:
    if one.said.scope is Scope.BLOCK:  # what happens inside at run time may need it
        return
    judged = [name for name, codes in one.codes.items() if codes.issubset(enabled) and not _all_own(codes)]
    idle = [name for name in judged if name not in one.used]
    if idle:
        named = ", ".join(f"`{name}`" for name in idle)
        yield one.said.span, f"nothing to suppress: no finding of {named} here"


def _all_own(codes: frozenset[str]) -> bool:
    return all(code.startswith(OWN_FAMILY) for code in codes)


def _cold_without_reason(said: Comments) -> Iterator[tuple[Span, str]]:
    for hint in said.hints.values():
        if hint.heat is HeatHint.COLD and not hint.reason:
            yield hint.span, "say why it is cold: the next reader cannot tell whether it is still right"


def _about(rules: Catalogue, code: str, path: str, span: Span, message: str) -> Finding:
    name, severity = rules.describe(code)
    return Finding(
        code=code,
        name=name,
        path=path,
        span=span,
        message=message,
        severity=severity,
        confidence=Confidence.CERTAIN,
        function="<module>",
        heat=Heat(HeatLevel.COLD),
        kind_evidence="",
        statement=(span.line, span.end_line),
    )
