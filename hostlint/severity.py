"""How grave a finding is: by how often the place runs and how sure the scan is."""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.model import Confidence, HeatLevel, Severity

if TYPE_CHECKING:
    from hostlint.facts.fact import Fact
    from hostlint.rule import Rule


def severity_of(rule: Rule, fact: Fact) -> Severity:
    """An error for a certain wait in a step loop, the rule's own grade on a step's path, a note for what runs once a request."""
    if fact.heat.level <= HeatLevel.REQUEST:
        return Severity.NOTE
    if rule.severity is Severity.NOTE:
        return Severity.NOTE
    certain = fact.heat.level is HeatLevel.LOOP and fact.confidence is Confidence.CERTAIN
    return Severity.ERROR if certain else rule.severity
