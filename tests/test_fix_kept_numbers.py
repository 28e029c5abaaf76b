"""What the host works out, or a configuration holds, is kept only where numbers alone decide it; everything else is left."""
from __future__ import annotations

import pytest

from hostlint.fix.once import fixed_text

PROGRAM = """\
import math

import numpy as np
import torch
from torch import nn


class Embedding(nn.Module):
    def __init__(self, width: int, means: list[float], rows):
        super().__init__()
        self.width, self.means, self.rows = width, means, rows
        self.layer = nn.Linear(width, width)

    def forward(self, x, host):
        half = self.width // 2
        table = {}
        return self.layer(x) * table.sum()


def sample(model: Embedding, x, host, steps: int):
    x = x.cuda()
    for _ in range(steps):
        x = model(x, host)
    return x
"""
UPLOADS = ("HL201", "HL202")
KEPT = [
    (
        "torch.cos(torch.arange(half) / half).to(x.device)",
        "kept(lambda half, device: torch.cos(torch.arange(half) / half).to(device), half, x.device)",
    ),
    (
        "torch.tensor(self.means).view(1, -1).to(x.device, x.dtype)",
        "kept_table(tuple(self.means), x.device).view(1, -1).to(x.device, x.dtype)",
    ),
    ("torch.tensor(self.means, device=x.device)", "kept_table(tuple(self.means), device=x.device)"),
    ("x.new_tensor(self.means)", "kept_table(tuple(self.means), x.device, x.dtype)"),
    ("torch.tensor([0, x.shape[-2]], device=x.device)", "kept_table((0, x.shape[-2]), device=x.device)"),
]


@pytest.mark.parametrize(("before", "after"), KEPT, ids=[before for before, _ in KEPT])
def test_numbers_are_kept_for_review(before: str, after: str) -> None:
    program = PROGRAM.format(before)
    assert fixed_text(program, "step.py") == program
    assert f"        table = {after}\n" in fixed_text(program, "step.py", UPLOADS, review=True)


LEFT = [
    "torch.randn(half).to(x.device)",
    "torch.cos(torch.randn(half) / half).to(x.device)",
    "(torch.arange(half) / half * torch.rand(half)).to(x.device)",
    "torch.exp(torch.arange(half) / half * host).to(x.device)",
    "torch.exp(torch.from_numpy(self.rows)).to(x.device)",
    "torch.exp(torch.tensor(np.cumsum(self.rows))).to(x.device)",
    "torch.tensor(sorted(self.means)).to(x.device)",
    "torch.tensor(self.means, device=x.device, requires_grad=True)",
    "torch.tensor([0, len(self.means) + half, model_rows()], device=x.device)",
]


@pytest.mark.parametrize("left", LEFT)
def test_what_may_be_other_numbers_is_left(left: str) -> None:
    program = PROGRAM.format(left)
    assert fixed_text(program, "step.py", UPLOADS, review=True) == program


def test_numbers_that_the_function_writes_are_left() -> None:
    program = PROGRAM.format("torch.tensor(self.means, device=x.device)")
    writing = program.replace("        half =", "        self.means[0] = 0.5\n        half =")
    assert fixed_text(program, "step.py", UPLOADS, review=True) != program
    assert fixed_text(writing, "step.py", UPLOADS, review=True) == writing
