"""Schedulers of our own, each with the faults that real ones have: over whole schedules, fixed ones give the bits of the originals.

`benchmarks/fixed_schedulers.py` does the same with every scheduler class of diffusers."""
from __future__ import annotations

from collections import Counter

import pytest

from hostlint.fix.once import fix_text
from hostlint.runtime_checks.bits import difference, trial

HEAD = """\
import math

import torch

net = torch.nn.Tanh().cuda()


class Scheduler:
    def __init__(self, config=None):
        self.config = config or {}
        self.index = None

    def set_timesteps(self, n: int, device, dtype):
        self.sigmas = torch.linspace(14.6, 0, n + 1, device=device, dtype=dtype)
        self.timesteps = torch.linspace(999, 0, n, device=device).round()
        self.index = 0
        self.history = []
"""
TAIL = """\


@torch.no_grad()
def sample(x, steps: int, dtype=torch.float32):
    x = x.cuda()
    scheduler = Stepper()
    scheduler.set_timesteps(steps, x.device, dtype)
    seen = []
    for t in scheduler.timesteps:
        x = scheduler.step(net(x * 0.9), t, x)
        seen.append(x)
    return seen

"""
STEPS = {
    "searched": '''
    def step(self, out, t, x):
        place = (self.timesteps == t).nonzero()
        if place.shape[0] > 1:
            place = place[1:]
        sigma, following = self.sigmas[self.index].to(x.dtype), self.sigmas[self.index + 1]
        step = float(following) - sigma.item()
        if sigma.item() > 2.0 and sigma.item() < 9.0:
            step = step * 0.5
        self.index += 1
        return x + out * step * torch.tensor(0.25, device=x.device) + place[0].item() * 0
''',
    "solved": '''
    def step(self, out, t, x):
        sigma, following = self.sigmas[self.index], self.sigmas[self.index + 1]
        h = torch.log1p(following) - torch.log1p(sigma)
        self.history = [*self.history, out][-3:]
        ratios = []
        for number in range(1, len(self.history)):
            ratios.append((torch.log1p(self.sigmas[self.index - number]) - torch.log1p(sigma)) / h)
        ratios.append(1.0)
        powers = torch.tensor(ratios, device=x.device)
        right = torch.tensor([h * 0.5, h * h], device=x.device)
        if len(self.history) == 2:
            weights = torch.tensor([0.5], dtype=x.dtype, device=x.device)
        elif len(self.history) == 3:
            rows = torch.stack([powers[:2] ** k for k in range(2)])
            weights = torch.linalg.solve(rows + torch.eye(2, device=x.device, dtype=rows.dtype) * 3, right).to(x.dtype)
        else:
            weights = torch.tensor([0.25], dtype=x.dtype, device=x.device)
        self.index += 1
        return x + out * weights.sum() * 0.1
''',
    "masked": '''
    def step(self, out, t, x):
        bound = torch.full((x.shape[0],), t, dtype=torch.long, device=x.device)
        hot = x > 1.5
        y = x.clone()
        y[hot] *= 0.5
        y[hot] = y[hot] * 2 - out[hot]
        y[y.isnan()] = 0.0
        means = torch.tensor([0.1, -0.0, 0.3], device=x.device).view(1, -1)
        scale = torch.exp(-math.log(100.0) * torch.arange(start=0, end=3, dtype=torch.float32) / 3).to(device=x.device)
        self.index += 1
        return (y * scale + means + bound[:, None] * 1e-4).to(x.dtype)
''',
    "picked": '''
    def set_timesteps(self, n, device, dtype):
        super().set_timesteps(n, device, dtype)
        self.at = torch.zeros((), dtype=torch.long, device=device)
        self.table = torch.rand(n + 1, 3, generator=torch.Generator().manual_seed(1))

    def step(self, out, t, x):
        sigma = self.sigmas[self.at]
        row = self.table[self.index].to(device=x.device, dtype=x.dtype)
        noise = torch.distributions.Normal(row, row.abs() + 0.1, validate_args=False).sample()
        self.at += 1
        self.index += 1
        return x * 0.9 + out * sigma * 0.01 + row + noise * 0.1
''',
}  # fmt: skip
MENDED = {
    "searched": {"HL101", "HL102", "HL201"},
    "solved": {"HL109", "HL114", "HL201"},
    "masked": {"HL108", "HL112", "HL201", "HL202"},
    "picked": {"HL107", "HL116", "HL203"},
}
INPUTS = (
    "torch.randn(2, 3, generator=torch.Generator().manual_seed(3)) * 14.6",
    "torch.tensor([[float('nan'), -0.0, 1e30], [float('inf'), 2.0, -2.0]])",
    "torch.randn(2, 3, generator=torch.Generator().manual_seed(4)).t().contiguous().t()",
)


def program(name: str) -> str:
    return f"{HEAD}\n\nclass Stepper(Scheduler):{STEPS[name]}{TAIL}"


@pytest.mark.parametrize("name", STEPS)
def test_every_step_of_a_fixed_scheduler_has_the_same_bits(name: str) -> None:
    before = program(name)
    result = fix_text(before, "scheduler.py", review=True)
    assert MENDED[name] <= set(Counter(one.code for one in result.mended))
    after = result.files[0].text
    for x in INPUTS:
        for steps in (1, 5, 12):
            for dtype in ("torch.float32", "torch.float64"):
                call = f"(torch.manual_seed(0), sample({x}, {steps}, {dtype}))[1]"
                assert difference(trial(before, call), trial(after, call)) == "", call
