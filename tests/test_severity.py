"""How grave a finding is: error for a certain wait in a step loop, warning for a likely one, note for the rest; one a place."""
from __future__ import annotations

import pytest

from hostlint import registry
from hostlint.facts.fact import Fact
from hostlint.facts.kinds import FactKind
from hostlint.model import Confidence, Heat, HeatLevel, Severity, Span
from hostlint.scan import scan_text
from hostlint.severity import severity_of

COSTS_UNKNOWN = {"HL301", "HL302", "HL303", "HL306", "HL307", "HL308", "HL309", "HL310", "HL311", "HL312", "HL313"}


def fact(kind: FactKind, level: HeatLevel, confidence: Confidence) -> Fact:
    return Fact(kind, "a.py", "f", Span(1, 1, 1, 2), (1, 1), "", "t", "", confidence, Heat(level), "")


@pytest.mark.parametrize(
    ("level", "confidence", "wanted"),
    [
        (HeatLevel.LOOP, Confidence.CERTAIN, Severity.ERROR),
        (HeatLevel.LOOP, Confidence.LIKELY, Severity.WARNING),
        (HeatLevel.CALL, Confidence.CERTAIN, Severity.WARNING),
        (HeatLevel.REQUEST, Confidence.CERTAIN, Severity.NOTE),
        (HeatLevel.COLD, Confidence.CERTAIN, Severity.NOTE),
    ],
)
def test_a_wait_is_as_grave_as_its_loop_and_its_proof(level: HeatLevel, confidence: Confidence, wanted: Severity) -> None:
    assert severity_of(registry.for_kind(FactKind.ITEM), fact(FactKind.ITEM, level, confidence)) is wanted


def test_what_nobody_has_measured_is_a_note_however_certain() -> None:
    for rule in registry.rules():
        if rule.code in COSTS_UNKNOWN:
            assert severity_of(rule, fact(rule.kinds[0], HeatLevel.LOOP, Confidence.CERTAIN)) is Severity.NOTE
        elif rule.kinds and rule.on:
            assert severity_of(rule, fact(rule.kinds[0], HeatLevel.CALL, Confidence.LIKELY)) is Severity.WARNING


def test_one_place_has_one_finding() -> None:
    text = """\
import torch
from torch import nn


class Block(nn.Module):
    def forward(self, x, cos):
        table = torch.cat([cos.float(), cos.float()], -1)
        return x * table


class Stack(nn.Module):
    def __init__(self, depth: int):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(depth))

    def forward(self, x, cos):
        for block in self.blocks:
            x = block(x, cos)
        return x
"""
    findings, _ = scan_text(text, "stack.py")
    assert [(finding.span.line, finding.code) for finding in findings] == [(7, "HL307")]
