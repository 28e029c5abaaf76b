"""The report for people: every finding with its source, why it is hot, why the value is taken to live there, and what to do."""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hostlint.model import Applicability, ChainLink, Finding, HeatLevel
from hostlint.report.confirm_words import place, plural
from hostlint.report.frame import frame
from hostlint.report.style import GUTTER, SEVERITY_STYLES, Line, write
from hostlint.report.verdict import verdict, verdicts

if TYPE_CHECKING:
    from hostlint.confirm.record import Event
    from hostlint.report.base import Report

_HEAT_WORDS = {
    HeatLevel.LOOP: "runs in a step loop",
    HeatLevel.CALL: "runs once per step",
    HeatLevel.REQUEST: "runs once per request or epoch",
    HeatLevel.COLD: "runs seldom",
}
_FIX_WORDS = {Applicability.EXACT: "exact fix", Applicability.REVIEW: "fix to review"}


def render(report: Report) -> str:
    return write(_lines(report), report.coloured)


def _lines(report: Report) -> Iterator[Line]:
    for finding in report.result.findings:
        yield from _finding(finding, report)
        yield []
    for event in report.unpredicted:
        yield from _unpredicted(event)
        yield []
    for error in report.result.errors:
        yield [("error", SEVERITY_STYLES["error"]), (f": {error.message}", "bold")]
        yield [("  --> ", GUTTER), (f"{error.path}:{error.line}", "")]
        yield []
    yield [(summary(report), "")]


def _finding(finding: Finding, report: Report) -> Iterator[Line]:
    margin = len(str(finding.span.end_line))
    what, _, instead = finding.message.partition("; ")
    yield [
        (finding.severity.value, SEVERITY_STYLES[finding.severity.value]),
        (f"[{finding.code} {finding.name}]", "bold"),
        (f": {what}", ""),
    ]
    place = f"{finding.path}:{finding.span.line}:{finding.span.column}"
    yield [(f"{'':{margin}}--> ", GUTTER), (place, ""), (f" in {finding.function}" if finding.function else "", "")]
    yield from frame(finding, report.sources, margin)
    for label, text in (*_remarks(finding), ("help", _help(finding, instead))):
        yield [(f"{'':{margin}} = ", GUTTER), (f"{label}: ", "bold"), (text, "")]


def _unpredicted(event: Event) -> Iterator[Line]:
    times = plural(event.count, "time")
    yield [("unpredicted", "bold magenta"), (f": {event.call} ({event.kind}) {times} in the run, and no finding explains it", "")]
    yield [(" --> ", GUTTER), (place(event), "")]


def _remarks(finding: Finding) -> Iterator[tuple[str, str]]:
    if finding.heat.chain or finding.heat.level is not HeatLevel.COLD:
        yield "hot" if finding.heat.level >= HeatLevel.CALL else "heat", _HEAT_WORDS[finding.heat.level] + _chain(finding.heat.chain)
    if finding.confirmed is not None:
        yield "run", verdict(finding.confirmed)
    if finding.kind_evidence:
        yield "why", f"{finding.kind_evidence} ({finding.confidence.label})"


def _help(finding: Finding, instead: str) -> str:
    """What to do: the fix where there is one, else what the message says after its first half, and where to read more."""
    more = f"`hostlint rule {finding.code}` says more"
    if finding.fix:
        return f"{finding.fix.message} ({_FIX_WORDS[finding.fix.applicability]}; {more})"
    return f"{instead} ({more})" if instead else more


def _chain(chain: tuple[ChainLink, ...]) -> str:
    if not chain:
        return ""
    return ": " + " → ".join(f"{link.path}:{link.line} in {link.function}" for link in chain)


def summary(report: Report) -> str:
    """One sentence with the numbers."""
    count = report.result.summary
    left_out = [f"{number} {word}" for number, word in ((count.suppressed, "suppressed"), (count.baselined, "in the baseline")) if number]
    found = f"Found {plural(count.findings, 'finding')}" if count.findings else "No findings"
    errors = f", {plural(len(report.result.errors), 'error')}" if report.result.errors else ""
    run = f" By the run: {said}." if (said := verdicts(report.result.findings)) else ""
    return f"{found}{errors} in {plural(count.files, 'file')}" + (f" ({', '.join(left_out)})." if left_out else ".") + run
