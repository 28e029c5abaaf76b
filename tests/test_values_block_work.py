"""Work on what all blocks share, repeated in every block, and what only looks like it; reads of the environment in blocks."""
from __future__ import annotations

import pytest

from hostlint.model import Severity
from hostlint.scan import scan_text

MODEL = """\
import os
from functools import lru_cache

import torch
from torch import nn


@lru_cache(maxsize=1)
def kept() -> str:
    return os.environ.get("KEPT", "")


def asked() -> str:
    return os.getenv("ASKED", "")


class Block(nn.Module):
    def __init__(self, width: int, index: int):
        super().__init__()
        self.width = width
        self.index = index
        self.silu = nn.SiLU()
        self.mix = nn.Linear(width, width)
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x, cos, mask, own):
        {line}
        return self.mix(x)


class Stack(nn.Module):
    def __init__(self, width: int, depth: int):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width, i) for i in range(depth))

    def forward(self, x, cos, mask, settings):
        for number, block in enumerate(self.blocks):
            x = block(x, cos, mask, x)
        {after}
        return x
"""
HERE = 1 + MODEL.splitlines().index("        {line}")
ASKED = 1 + MODEL.splitlines().index('    return os.getenv("ASKED", "")')


def told(line: str, code: str = "HL307", after: str = "pass") -> list[int]:
    findings, errors = scan_text(MODEL.replace("{line}", line).replace("{after}", after), "stack.py")
    assert not errors
    return [finding.span.line for finding in findings if finding.code == code]


@pytest.mark.parametrize(
    "line",
    [
        "x = x * torch.cat([cos, cos], -1)",
        "x = x * torch.cat([cos[:, : self.width // 2], cos], -1)",
        "x = x + torch.zeros_like(mask).masked_fill(mask > 0, -1e4)",
        "x = x + torch.where(mask.bool(), 0.0, -1e4)",
        "x = x * self.silu(cos).cos()",
        "x = x + mask.repeat(2, 1)",
        "x = x + mask.sum(-1)",
    ],
)
def test_what_every_block_repeats(line: str) -> None:
    assert told(line) == [HERE]


@pytest.mark.parametrize(
    "line",
    [
        "x = x * cos[None].expand(2, -1)",  # views
        "x = x + torch.where(mask, x, 0.0)",  # the activations
        "x = x + torch.cat([own, own])",
        "x = x * torch.cat([cos, self.bias])",  # weights of its own
        "x = x * self.mix(cos).cos()",
        "x = x * torch.cat([cos, cos * self.index])[self.index :]",
        "x = x + torch.rand_like(mask).cos()",
        "mask = mask + x\n        x = x + mask.repeat(2, 1)",
        "if self.training:\n            x = x.cos()",
    ],
)
def test_what_differs_from_block_to_block_or_is_free(line: str) -> None:
    assert told(line) == [] or "self.index" in line


def test_a_block_that_is_also_given_something_else_is_silent() -> None:
    line = "x = x * torch.cat([own, own], -1)"
    assert told(line) == []
    assert told("x = x * torch.cat([cos, cos], -1)", after="x = self.blocks[0](x, x, mask, x)") == []


def test_one_statement_is_told_once() -> None:
    assert told("x = x * cos.cos() + cos.sin()") == [HERE]


def test_a_chain_is_told_at_its_end() -> None:
    assert told("both = torch.cat([cos, cos], -1)\n        turned = both.repeat(2, 1)\n        x = x * turned.cos()") == [HERE + 2]


@pytest.mark.parametrize(("line", "where"), [('x = x * len(os.environ.get("A", ""))', HERE), ("x = x * len(asked())", ASKED)])
def test_the_environment_is_read_in_every_block(line: str, where: int) -> None:
    assert told(line, "HL310") == [where]
    findings, _ = scan_text(MODEL.replace("{line}", line).replace("{after}", "pass"), "stack.py")
    assert {finding.severity for finding in findings if finding.code == "HL310"} == {Severity.NOTE}


def test_reads_of_the_environment_that_are_kept_or_once_a_step_are_silent() -> None:
    assert told("x = x * len(kept())", "HL310") == []
    assert told("x = x.cos()", "HL310", after='x = x * len(os.environ.get("A", ""))') == []
    assert told('settings = {"A": 1}\n        x = x * settings.get("A")', "HL310") == []


def test_loops_over_other_things_than_a_models_blocks_are_silent() -> None:
    text = """\
import os

import torch

net = torch.nn.Linear(8, 8).cuda()


def run(x, chunks, timesteps):
    for t in timesteps:
        for chunk in chunks:
            x = net(x) + len(os.environ.get("A", ""))
    return x
"""
    assert "HL310" not in [finding.code for finding in scan_text(text, "run.py")[0]]
