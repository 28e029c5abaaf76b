"""Work on the device inside a step loop whose operands are all bound before the loop: the same result in every pass.

## Why it costs
Each pass launches the same kernels on the same values: a cast reads and writes the whole tensor, a projection is a matrix product, a small
mask costs its launch. The host makes the calls again, too. For a text projection of a diffusion model, done again at every step, hoisting
has been worth two percent of a request; for one small mask it is a launch a pass. The finding is a note: measure first.

## Instead
- Compute it once before the loop and use the name inside: the same operations on the same values give the same bits.
- In a loop over blocks, before that loop; the result is then shared by the blocks, so that none may write into it.
- Where only some passes need it, compute it at the first that does and keep it for the request, never longer.

With gradients, one shared result sums the gradients of all passes at one place: equal up to the order of the sum.

## Not flagged
Views (`view`, `expand`, slices, `unsqueeze`, `transpose`, `detach`), which cost nothing on the device; anything that depends on the
loop's variable or on a name that the loop binds; tensors that are written to in the loop, and fresh copies that are made to be written to
(`clone`, `zeros`); random numbers and dropout; modules while they train; attributes that something else may set; work behind a test for a
kept value, or of the first pass only. A cast to the type that a tensor has already is free in torch: the finding rests on the types being
different.

## Evidence
By the graph of values: no operand is bound, iterated or written to in the loop. None of these calls makes the host wait; they cost their
launches and their time on the device, which nobody has measured for yours.

## How to confirm
`hostlint.runtime_checks.RecordOps` counts casts and other calls per step.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.model import Severity
from hostlint.rule import Example, Problem, Rule
from hostlint.wording import when, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    return Problem(
        f"`{whole(node)}` gives the same result in every pass, {when(fact)}: {fact.evidence}; compute it once before the loop and use that"
    )


RULE = Rule(
    code="HL302",
    name="loop-invariant-work",
    summary="work on the device in a step loop whose operands do not change in the loop",
    kinds=(FactKind.INVARIANT_WORK,),
    check=check,
    severity=Severity.NOTE,
    examples=(
        Example(
            bad="""\
import torch

net = torch.nn.Linear(8, 8).cuda()


def denoise(x, text_mask, steps: int):
    mask = text_mask.cuda()
    for step in range(steps):
        keep = mask.float()  # expect
        row = mask[None, :]
        x = net(x * keep) * row + x.float() * step
    return x
""",
            good="""\
import torch

net = torch.nn.Linear(8, 8).cuda()


def denoise(x, text_mask, steps: int):
    mask = text_mask.cuda()
    keep = mask.float()
    row = mask[None, :]
    for step in range(steps):
        x = net(x * keep) * row + x.float() * step
    return x
""",
        ),
        Example(
            bad="""\
import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, width: int, depth: int):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.text_norm = nn.LayerNorm(width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x, text):
        for layer in self.layers:
            context = self.text_norm(text)  # expect
            x = layer(x) + context + self.drop(text)
        return x
""",
            good="""\
import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, width: int, depth: int):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.text_norm = nn.LayerNorm(width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x, text):
        context = self.text_norm(text)
        for layer in self.layers:
            x = layer(x) + context + self.drop(text)
        return x
""",
        ),
        Example(
            bad="""\
import torch

net = torch.nn.Linear(8, 8).cuda()


def guide(x, positive, negative, steps: int):
    positive, negative = positive.cuda(), negative.cuda()
    seen = torch.zeros(8, device="cuda")
    for step in range(steps):
        both = torch.cat([negative, positive])  # expect
        seen[step] = 1.0
        past = seen.half()
        noise = torch.randn_like(positive)
        x = net(torch.cat([x, x]) + both + past) + noise
    return x
""",
            good="""\
import torch

net = torch.nn.Linear(8, 8).cuda()


def guide(x, positive, negative, steps: int):
    positive, negative = positive.cuda(), negative.cuda()
    seen = torch.zeros(8, device="cuda")
    both = torch.cat([negative, positive])
    for step in range(steps):
        seen[step : step + 1] = 1.0
        past = seen.half()
        noise = torch.randn_like(positive)
        x = net(torch.cat([x, x]) + both + past) + noise
    return x
""",
            also=(),
        ),
    ),
)
