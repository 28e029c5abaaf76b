"""What the host works out, or a configuration holds, is kept only where numbers alone decide it; everything else is left."""
from __future__ import annotations

import pytest

from hostlint.fix.once import fix_text, fixed_text

PROGRAM = """\
import math

import numpy as np
import torch
from torch import nn

CENTRE = (0.48, -0.45, 0.4)
SCALED = [one / 255 for one in (128, 120, 100)]


class Embedding(nn.Module):
    def __init__(self, width: int, means: list[float], rows, config):
        super().__init__()
        self.width, self.means, self.rows, self.config = width, means, rows, config
        self.layer = nn.Linear(width, width)

    def forward(self, x, host, model_config, batch):
        half = self.width // 2
        arch = self.config.arch
        patch = (self.width, 2, -1)
        steps = [1, 2]
        grown = [1]
        grown.append(half)
        device, dtype = x.device, x.dtype
        table = {}
        return self.layer(x) * table.sum()


def sample(model: Embedding, x, host, steps: int, model_config, batch):
    x = x.cuda()
    for _ in range(steps):
        x = model(x, host, model_config, batch)
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
    ("torch.tensor(model_config.std, device=x.device)", "kept_table(tuple(model_config.std), device=x.device)"),
    ("1.0 / torch.tensor(arch.std, dtype=dtype, device=device)", "1.0 / kept_table(tuple(arch.std), dtype=dtype, device=device)"),
    (
        "torch.tensor(arch.means).view(1, arch.z, 1).to(device, dtype)",
        "kept_table(tuple(arch.means), device).view(1, arch.z, 1).to(device, dtype)",
    ),
    (
        "torch.tensor(arch.means, dtype=torch.float64).to(dtype=dtype, device=device)",
        "kept_table(tuple(arch.means), device, dtype=torch.float64).to(dtype=dtype, device=device)",
    ),
    ("x.new_tensor(self.config.arch.means)", "kept_table(tuple(self.config.arch.means), x.device, x.dtype)"),
    ("torch.tensor(CENTRE, device=device)", "kept_table(tuple(CENTRE), device=device)"),
    ("torch.tensor(patch, dtype=dtype, device=device)", "kept_table(patch, dtype=dtype, device=device)"),
    ("torch.tensor(steps, device=device)", "kept_table(tuple(steps), device=device)"),
    (
        "torch.cos(torch.arange(end=half) / half).to(device=x.device)",
        "kept(lambda half, device: torch.cos(torch.arange(end=half) / half).to(device=device), half, x.device)",
    ),
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
    "torch.tensor(batch.lengths, device=x.device)",
    "torch.tensor(SCALED, device=x.device)",
    "torch.tensor(grown, device=x.device)",
    "torch.tensor(arch.means).view(1, -1).to(host)",
    "torch.exp(torch.arange(start=0, end=half, out=host)).to(x.device)",
]


@pytest.mark.parametrize("left", LEFT)
def test_what_may_be_other_numbers_is_left(left: str) -> None:
    program = PROGRAM.format(left)
    assert fixed_text(program, "step.py", UPLOADS, review=True) == program


def test_only_what_is_not_seen_is_assumed_to_be_numbers() -> None:
    for data, assumed in (("CENTRE", False), ("steps", False), ("arch.std", True), ("patch", True)):
        result = fix_text(PROGRAM.format(f"torch.tensor({data}, device=device)"), "step.py", UPLOADS, review=True)
        (mended,) = result.mended
        assert mended.fix is not None
        assert (f"`{data}` is a flat list of Python numbers" in mended.fix.message) is assumed


def test_a_name_that_is_bound_anew_is_left() -> None:
    program = PROGRAM.format("torch.tensor(CENTRE, device=device)")
    assert fixed_text(program, "step.py", UPLOADS, review=True) != program
    anew = program + "\n\ndef load(values):\n    global CENTRE\n    CENTRE = values\n"
    twice = program.replace("CENTRE = (", "CENTRE = (0.5, 0.5, 0.5)\nif math.inf > 1:\n    CENTRE = (")
    assert [fixed_text(one, "step.py", UPLOADS, review=True) == one for one in (anew, twice)] == [True, True]


def test_numbers_that_the_function_writes_are_left() -> None:
    program = PROGRAM.format("torch.tensor(self.means, device=x.device)")
    writing = program.replace("        half =", "        self.means[0] = 0.5\n        half =")
    assert fixed_text(program, "step.py", UPLOADS, review=True) != program
    assert fixed_text(writing, "step.py", UPLOADS, review=True) == writing
