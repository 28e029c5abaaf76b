"""A search for the true elements: `nonzero`, `argwhere`, `torch.where(mask)`.

## Why it costs
The size of the result depends on the data, so the host waits to learn it before it can allocate. Where the search looks for one step of
a schedule, an `.item()` of the hit follows, which is a second wait.

## Instead
- Work with the mask: `torch.where(mask, a, b)`, `x * mask`, `masked_fill(mask, number)`.
- The step of a schedule: a host counter, set when the schedule is set. Duplicated timesteps need the second match on the first call.
- `torch.nonzero_static(mask, size=n)` where an upper bound is known; it pads.
- Positions that stay the same over the steps: search once before the loop, then `gather` and `scatter` with them.

## Not flagged
Three-argument `torch.where`; `count_nonzero`; `nonzero_static`; NumPy arrays and host tensors.

## Evidence
NVIDIA H200, torch 2.11:
- `x.nonzero()`: 1 wait
- `torch.nonzero(m)`: 1 wait
- `torch.where(m)`: 1 wait
- `torch.argwhere(m)`: 1 wait
- `torch.nonzero_static(m, size=4)`: free
- `torch.where(m, x, s)`: free
- `torch.count_nonzero(m)`: free

## How to confirm
`torch.cuda.set_sync_debug_mode("warn")` reports the line.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.rule import Example, Problem, Rule
from hostlint.wording import waits, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    return Problem(f"{waits(fact, whole(node))} to learn how many elements are true; {_instead(node)}")


def _instead(node: cst.BaseExpression) -> str:
    import libcst as cst

    match node:
        case cst.Call(func=function, args=arguments):
            tested = [argument.value for argument in arguments]
            if isinstance(function, cst.Attribute):
                tested.append(function.value)
            if any(_is_lookup(value) for value in tested):
                return "to find the own step in a schedule, count steps on the host (set the counter with the schedule)"
    return "use the mask itself (`torch.where(mask, a, b)`, `x * mask`), `nonzero_static` with a bound, or search once before the loop"


def _is_lookup(node: cst.BaseExpression) -> bool:
    import libcst as cst

    match node:
        case cst.Comparison(left=cst.Attribute(attr=cst.Name(name)) | cst.Name(name), comparisons=[cst.ComparisonTarget(cst.Equal())]):
            return "timesteps" in name or "sigmas" in name
    return False


RULE = Rule(
    code="HL110",
    name="device-nonzero",
    summary="`nonzero`, `argwhere` or one-argument `where` on the device waits for the size of its result",
    kinds=(FactKind.NONZERO,),
    check=check,
    examples=(
        Example(
            bad="""\
import torch


class Ladder:
    def __init__(self, count: int):
        self.timesteps = torch.linspace(999, 0, count, device="cuda")
        self.sigmas = torch.linspace(1, 0, count + 1, device="cuda")

    def step(self, noise, t, x):
        hits = (self.timesteps == t).nonzero()  # expect
        return x - noise * self.sigmas.gather(0, hits[0])


def sample(unet, ladder: Ladder, x):
    for t in ladder.timesteps:
        x = ladder.step(unet(x, t), t, x)
    return x
""",
            good="""\
import torch


class Ladder:
    def __init__(self, count: int):
        self.timesteps = torch.linspace(999, 0, count, device="cuda")
        self.sigmas = torch.linspace(1, 0, count + 1, device="cuda")
        self.at = 0

    def step(self, noise, x):
        self.at += 1
        return x - noise * self.sigmas[self.at - 1]


def sample(unet, ladder: Ladder, x):
    for t in ladder.timesteps:
        x = ladder.step(unet(x, t), x)
    return x
""",
        ),
        Example(
            bad="""\
import torch
from torch import nn


class Prune(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.score = nn.Parameter(torch.zeros(width))
        self.table = nn.Parameter(torch.zeros(width, width))

    def forward(self, x):
        kept = torch.where(self.score > 0)[0]  # expect
        soft = torch.where(self.score > 0, self.score, 0.0)
        return x @ self.table.index_select(0, kept).sum(0) + soft.sum()
""",
            good="""\
import torch
from torch import nn


class Prune(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.score = nn.Parameter(torch.zeros(width))
        self.table = nn.Parameter(torch.zeros(width, width))

    def forward(self, x):
        kept = (self.score > 0).to(self.table.dtype)
        soft = torch.where(self.score > 0, self.score, 0.0)
        return x @ (kept @ self.table) + soft.sum()
""",
        ),
        Example(
            bad="""\
import torch

head = torch.nn.Linear(32, 4).cuda()


def mine(batches, opt):
    for x, target in batches:
        error = (head(x.cuda(non_blocking=True)) - target.cuda(non_blocking=True)).square().sum(-1)
        hard = torch.argwhere(error > error.mean()).flatten()  # expect
        error.index_select(0, hard).sum().backward()
        opt.step()
        opt.zero_grad()
""",
            good="""\
import torch

head = torch.nn.Linear(32, 4).cuda()


def mine(batches, opt):
    for x, target in batches:
        error = (head(x.cuda(non_blocking=True)) - target.cuda(non_blocking=True)).square().sum(-1)
        hard = error > error.mean()
        (error * hard).sum().backward()
        share = torch.count_nonzero(hard)
        first = torch.nonzero_static(hard, size=8)
        opt.step()
        opt.zero_grad()
    return share, first
""",
        ),
    ),
)
