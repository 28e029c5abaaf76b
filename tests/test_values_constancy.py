"""What stays the same over the steps: which constants are rebuilt, which only look like it, and the reason that is given."""
from __future__ import annotations

import pytest

from hostlint.model import Finding, Severity
from hostlint.scan import scan_text

MODULE = """\
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, width: int, config):
        super().__init__()
        self.config = config
        self.width = width
        self.step = 0
        self.mix = nn.Linear(width, width)

    def advance(self):
        self.step += 1

    def forward(self, x, mask, cache=None, kept_keys=None):
        y = self.mix(x)
        seen = cache.length()
        found = (mask > 0).nonzero()
        {line}
        return y
"""


def rebuilt(text: str) -> list[Finding]:
    findings, errors = scan_text(text, "layer.py")
    assert not errors
    return [finding for finding in findings if finding.code == "HL301"]


def in_forward(line: str) -> list[Finding]:
    return rebuilt(MODULE.replace("{line}", line))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("y = y * torch.arange(self.width, device=x.device).float().cos()", "literals and attributes"),
        ("y = y * torch.linspace(0, 1, self.width // 2 + 1, device=x.device) ** 2", "literals and attributes"),
        ("y = y * torch.arange(self.config.heads * 4, device=x.device)[None] ** 0.5", "literals and attributes"),
        ("y = y * torch.exp(torch.arange(x.shape[1], device=x.device) * 0.5)", "shapes"),
        ("n = y.size(1)\n        y = y + torch.triu(torch.full((n, n), -1e4, device=x.device), diagonal=1)", "shapes"),
        ("a = torch.arange(len(x), device=x.device)\n        y = y + (a[None] <= a[:, None])", "shapes"),
        ("y = y + torch.hann_window(self.width, device=x.device)", "literals and attributes"),
    ],
)
def test_what_stays_the_same_is_told_with_the_reason(line: str, why: str) -> None:
    found = in_forward(line)
    assert len(found) == 1
    assert why in found[0].kind_evidence
    assert found[0].severity is Severity.NOTE


@pytest.mark.parametrize(
    "line",
    [
        "y = y * torch.exp(torch.arange(self.step, device=x.device) * 0.5)",  # another method counts it up
        "y = y * torch.exp(torch.arange(seen, seen + x.shape[1], device=x.device) * 0.5)",  # the cache says where
        "y = y * torch.exp(torch.arange(kept_keys.shape[1], device=x.device) * 0.5)",  # a cache grows
        "y = y * torch.exp(torch.arange(len(found), device=x.device) * 0.5)",  # as many as the values say
        "y = torch.cat([y, torch.zeros(self.width, device=x.device)])",  # a buffer to write to
        "y = y + torch.randn(self.width, device=x.device)",
        "y = y + torch.arange(y.shape[1], device=x.device)",  # one small index
        "y = y * torch.arange(self.width, device=x.device)",
    ],
)
def test_what_changes_or_is_no_constant_is_silent(line: str) -> None:
    assert in_forward(line) == []


def test_a_parameter_is_what_every_call_passes() -> None:
    helper = """\
import torch
from torch import nn


def table(t, half: int):
    powers = torch.arange(half, device=t.device).float() * -0.1 / (half + 1)
    return t[:, None] * powers.exp().clamp(max=1.0).sqrt()


class Embed(nn.Module):
    def __init__(self, half: int):
        super().__init__()
        self.half = half

    def forward(self, t, count: int):
        return table(t, {argument})
"""
    assert len(rebuilt(helper.replace("{argument}", "self.half"))) == 1
    assert len(rebuilt(helper.replace("{argument}", "t.shape[0] * 2"))) == 1
    assert rebuilt(helper.replace("{argument}", "count")) == []


def test_batches_have_shapes_of_their_own() -> None:
    text = """\
import torch

net = torch.nn.Linear(4, 4).cuda()


def run({walked}, x):
    for each in {walked}:
        y = net(each)
        mask = torch.tril(torch.ones(y.shape[0], y.shape[0], device=x.device))
        x = mask @ x + y
"""
    assert rebuilt(text.replace("{walked}", "batches")) == []
    assert len(rebuilt(text.replace("{walked}", "timesteps"))) == 1


def test_a_place_that_uploads_is_reported_for_that_alone() -> None:
    findings, _ = scan_text(MODULE.replace("{line}", "y = y + torch.arange(self.width).to(x.device)"), "layer.py")
    assert [finding.code for finding in findings if finding.code != "HL110"] == ["HL202"]
