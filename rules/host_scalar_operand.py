"""A 0-dim host tensor where torch uploads it: `torch.where(mask, x, torch.tensor(0.0))`.

## Why it costs
Most operators take a 0-dim host tensor as a number. `torch.where` does not: it moves the scalar to the device with a blocking copy, in
every call.

## Instead
- The Python number itself: `torch.where(mask, x, 0.0)`. The dtype of `x` stays; only where `x` is 0-dim or of another kind (int, float)
  did the scalar tensor's dtype decide.
- A scalar that has to be a tensor: make it on the device once, `torch.zeros((), device=x.device, dtype=x.dtype)`.

## Not flagged
`x * torch.tensor(2.0)`, `x.add_(host_scalar)`, `masked_fill(mask, host_scalar)`, slices assigned from a host scalar: they go in as
numbers. Device scalars and Python numbers in `torch.where`.

## Evidence
NVIDIA H200, torch 2.11:
- `torch.where(m, x, torch.tensor(0.0))`: 1 wait
- `torch.where(m, x, s)`: free
- `x + torch.tensor(2.0)`: free
- `x.add_(hs)`: free
- `x[1:3] = hs`: free
- `x.masked_fill(m, torch.tensor(0.0))`: free

## How to confirm
`torch.cuda.set_sync_debug_mode("warn")` reports the call.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.rule import Example, Problem, Rule
from hostlint.wording import text, when, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    uploads = f"`{whole(node)}` uploads a host scalar {when(fact)}, and the host waits for the copy"
    return Problem(f"{uploads}; {_instead(node)}")


def _instead(node: cst.BaseExpression) -> str:
    import libcst as cst

    if isinstance(node, cst.Call):
        for argument in node.args:
            match argument.value:
                case cst.Call(func=cst.Attribute(value=cst.Name("torch"), attr=cst.Name("tensor")), args=[cst.Arg(value=number), *_]):
                    return f"pass `{text(number)}` itself, or make the scalar on the device once"
    return "pass the Python number itself, or make the scalar on the device once"


RULE = Rule(
    code="HL206",
    name="host-scalar-operand",
    summary="a 0-dim host tensor is uploaded by an op that does not take it as a number",
    kinds=(FactKind.HOST_OPERAND,),
    check=check,
    examples=(
        Example(
            bad="""\
import torch
from torch import nn


class Shrink(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.limit = nn.Parameter(torch.ones(width))

    def forward(self, x):
        small = self.limit.abs() < 0.1
        kept = torch.where(small, self.limit, torch.tensor(0.0))  # expect
        half = self.limit * torch.tensor(0.5)
        return x * (kept + half)
""",
            good="""\
import torch
from torch import nn


class Shrink(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.limit = nn.Parameter(torch.ones(width))

    def forward(self, x):
        small = self.limit.abs() < 0.1
        kept = torch.where(small, self.limit, 0.0)
        half = self.limit * torch.tensor(0.5)
        return x * (kept + half)
""",
        ),
        Example(
            bad="""\
import torch


def decode(model, ids, limit: int):
    ids = ids.cuda()
    low = torch.tensor(float("-inf"))
    for _ in range(limit):
        logits = model(ids)
        allowed = ids > 0
        logits = torch.where(allowed, ids.float(), low)  # expect
        logits = logits.masked_fill(allowed, low)
        ids = logits.argmax(-1, keepdim=True)
    return ids
""",
            good="""\
import torch


def decode(model, ids, limit: int):
    ids = ids.cuda()
    low = torch.full((), float("-inf"), device="cuda")
    top = torch.tensor(float("inf"))
    for _ in range(limit):
        logits = model(ids)
        allowed = ids > 0
        logits = torch.where(allowed, ids.float(), low)
        logits = logits.masked_fill(allowed, top)
        ids = logits.argmax(-1, keepdim=True)
    return ids
""",
        ),
        Example(
            bad="""\
import torch

net = torch.nn.Linear(16, 16).cuda()


def fit(batches, opt):
    one = torch.ones(())
    for x in batches:
        error = net(x.cuda(non_blocking=True)).abs()
        weight = torch.where(error > 2.0, one, error)  # expect
        (error * weight).mean().backward()
        opt.step()
        opt.zero_grad()
""",
            good="""\
import torch

net = torch.nn.Linear(16, 16).cuda()


def fit(batches, opt):
    one = torch.ones(())
    for x in batches:
        error = net(x.cuda(non_blocking=True)).abs()
        weight = torch.where(error > 2.0, 1.0, error)
        (error * weight).mean().add(one).backward()
        opt.step()
        opt.zero_grad()
""",
        ),
    ),
)
