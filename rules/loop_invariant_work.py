"""Work on the device inside a step loop whose operands are all bound before the loop: the same result in every pass.

## Why it costs
Each pass launches the same kernels on the same values: a cast reads and writes the whole tensor, a projection is a matrix product, a small
mask costs its launch. The host makes the calls again, too. For a text projection of a diffusion model, done again at every step, hoisting
has been worth two percent of a request; for one small mask it is a launch a pass. The finding is a note: measure first.

## Instead
- Compute it once before the loop and use the name inside: the same operations on the same values give the same bits.
- In a loop over blocks, before that loop; the result is then shared by the blocks, so that none may write into it.
- Where only some passes need it, compute it at the first that does and keep it for the request, never longer.

`hostlint fix` moves the assignment (or gives the expression a name) where every pass reaches it and the loop binds and writes to nothing
that it is made of, under any name that the function gives it. It is exact for a cast of a tensor that the function made itself, where the
tensor and the result meet only operations that make new tensors, and no gradient runs through: a cast cannot fail, so that it may also run
for a loop without passes. Else it is for review: a call in the loop may write into an operand, or into the one result that is shared now.

With gradients, one shared result sums the gradients of all passes at one place: equal up to the order of the sum.

## Not flagged
Views (`view`, `expand`, slices, `unsqueeze`, `transpose`, `detach`), which cost nothing on the device; anything that depends on the
loop's variable or on a name that the loop binds; tensors that are written to in the loop, and fresh copies that are made to be written to
(`clone`, `zeros`); random numbers and dropout; modules while they train; attributes that something else may set; work behind a test for a
kept value, or of the first pass only. A cast to the type that a tensor has already is free in torch: the finding rests on the types being
different.

Works that go into one another, or bind one name in several branches, are one finding, at the first of them. One launch on a single element
or on a number for each sample (time steps, guidance scales, sizes) is `possible` only.

## Evidence
By the graph of values: no operand is bound, iterated or written to in the loop. A scheduler's own table (`scheduler.sigmas.to(device)`) is
told by its name, also in a helper that a loop over the steps calls. None of these calls makes the host wait; they cost their launches and
their time on the device, which nobody has measured for yours.

## How to confirm
`hostlint.runtime_checks.RecordOps` counts casts and other calls per step.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.fix.hoist import hoisted
from hostlint.model import Applicability, Severity
from hostlint.rule import Example, Problem, Rule
from hostlint.wording import amount, when, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact
    from hostlint.fix.place import Place
    from hostlint.model import Fix


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    same = f"`{whole(node)}` gives the same result in every pass{amount(fact)}, {when(fact)}: {fact.evidence}"
    return Problem(f"{same}; compute it once before the loop and use that")


def fix(place: Place) -> Fix | None:
    return hoisted(place, int(place.fact.detail)) if place.fact.detail.isdecimal() else None


RULE = Rule(
    code="HL302",
    name="loop-invariant-work",
    summary="work on the device in a step loop whose operands do not change in the loop",
    kinds=(FactKind.INVARIANT_WORK,),
    check=check,
    severity=Severity.NOTE,
    fix=fix,
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
    for step in range(steps):
        row = mask[None, :]
        x = net(x * keep) * row + x.float() * step
    return x
""",
            fix=Applicability.REVIEW,
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
            fix=Applicability.REVIEW,
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
        seen[step : step + 1] = 1.0
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
            fix=Applicability.REVIEW,
        ),
        Example(
            bad="""\
import torch

net = torch.nn.Linear(4, 4).to("cuda")


def weighted(x, steps: int):
    ahead = torch.arange(4, device="cuda") > 1
    for step in range(steps):
        # what the mask leaves
        held = ahead.long()  # expect
        x = net(torch.where(ahead, x, held)) + step
    return x
""",
            good="""\
import torch

net = torch.nn.Linear(4, 4).to("cuda")


def weighted(x, steps: int):
    ahead = torch.arange(4, device="cuda") > 1
    # what the mask leaves
    held = ahead.long()
    for step in range(steps):
        x = net(torch.where(ahead, x, held)) + step
    return x
""",
            fix=Applicability.EXACT,
            trials=("(torch.manual_seed(0), weighted(torch.arange(4.0), 3))[1]", "weighted(torch.ones(4, requires_grad=True), 0)"),
        ),
    ),
)
