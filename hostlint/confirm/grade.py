"""What a verdict does to a finding's severity: what was measured counts for more than what was expected."""
from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hostlint.confirm.join import Verdict
from hostlint.model import Severity

if TYPE_CHECKING:
    from hostlint.confirm.join import Confirmed
    from hostlint.model import Finding

WRONG_CURES = "HL5"  # wrong whether they wait or not, and wherever they run
_COSTS = frozenset({Verdict.CONFIRMED, Verdict.REDONE})
_COSTS_NOTHING = frozenset({Verdict.NO_WAIT, Verdict.NOT_REACHED})
FIRST = (Verdict.CONFIRMED, Verdict.REDONE, None, Verdict.NOT_MEASURED, Verdict.NO_WAIT, Verdict.NOT_REACHED)


def graded(finding: Finding, confirmed: Confirmed) -> Finding:
    """The finding with what a run said of it, and the severity that follows."""
    return replace(finding, confirmed=confirmed, severity=severity(finding, confirmed.verdict))


def severity(finding: Finding, verdict: Verdict) -> Severity:
    """At least a warning for what cost time in the run, a note for what did not; as it was where the run cannot tell."""
    if verdict in _COSTS:
        return max(finding.severity, Severity.WARNING, key=lambda one: one.rank)
    if verdict in _COSTS_NOTHING and not finding.code.startswith(WRONG_CURES):
        return Severity.NOTE
    return finding.severity


def urgency(finding: Finding) -> int:
    """Sorts what a run confirmed before what it did not; equal for all without a run."""
    return FIRST.index(finding.confirmed.verdict if finding.confirmed is not None else None)
