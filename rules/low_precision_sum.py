"""A running sum of single numbers kept in bf16 or fp16.

## Why it costs
It costs the number. bf16 has 8 bits of precision: once the sum is some hundred times larger than what is added, adding changes nothing, and
the mean loss of an epoch stays where it was after the first few hundred steps. fp16 gets there later and overflows at 65504. It is
what sums become that were moved to the device in the model's precision.

## Instead
- `total = torch.zeros((), dtype=torch.float64, device=device)`; `total += loss.detach()` adds in float64, exactly as a Python float would.
- float32 where the device has no float64 (MPS).

## Not flagged
Sums of whole tensors (a residual stream, experts' outputs): their precision is the model's choice; sums in float32 and float64.

## Evidence
A training framework's bf16 means stood still until they were summed in float32. What the sum in float64 costs the host on an NVIDIA H200
with torch 2.11, one read at the end:
- `s.item()`: 1 wait

## How to confirm
Add 1.0 a thousand times to a bf16 zero: the sum is 256.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.rule import Example, Problem, Rule
from hostlint.wording import happens, short, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    total = short(fact.call or "total")
    return Problem(
        f"`{whole(node)}` is added to `{total}` in {fact.detail or 'half precision'} {happens(fact)}, where small terms stop counting: "
        f"make `{total}` in float64 (float32 on MPS)"
    )


RULE = Rule(
    code="HL504",
    name="low-precision-sum",
    summary="a running sum is kept in half precision",
    kinds=(FactKind.LOW_PRECISION_SUM,),
    check=check,
    examples=(
        Example(
            bad="""\
import torch


def mean_loss(model, loader):
    total = torch.zeros((), device="cuda", dtype=torch.bfloat16)
    for x in loader:
        total += model(x.cuda(non_blocking=True)).mean().detach()  # expect
    return total / len(loader)
""",
            good="""\
import torch


def mean_loss(model, loader):
    total = torch.zeros((), device="cuda", dtype=torch.float64)
    for x in loader:
        total += model(x.cuda(non_blocking=True)).mean().detach()
    return total / len(loader)
""",
        ),
        Example(
            bad="""\
import torch


def mean_norm(model, loader):
    total = torch.zeros(1, device="cuda", dtype=torch.half)
    for x in loader:
        total += model(x.cuda(non_blocking=True)).norm()  # expect
    return total
""",
            good="""\
import torch


def mix(experts, x):
    out = torch.zeros(x.shape, device="cuda", dtype=torch.half)
    for expert in experts:
        out += expert(x)
    return out
""",
        ),
        Example(
            bad="""\
import torch


@torch.no_grad()
def correct(model, loader):
    hits = torch.full((), 0.0, device="cuda", dtype=torch.float16)
    for x, y in loader:
        hits += (model(x.cuda(non_blocking=True)).argmax(-1) == y.cuda(non_blocking=True)).sum()  # expect
    return hits
""",
            good="""\
import torch


@torch.no_grad()
def correct(model, loader):
    hits = torch.zeros((), device="cuda", dtype=torch.long)
    for x, y in loader:
        hits += (model(x.cuda(non_blocking=True)).argmax(-1) == y.cuda(non_blocking=True)).sum()
    return hits
""",
        ),
    ),
)
