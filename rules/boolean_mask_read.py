"""`x[mask]` or `masked_select` with a boolean mask on the device.

## Why it costs
The result has as many rows as the mask has true elements, so torch runs `nonzero` and the host waits for the count.

## Instead
- A masked sum: `(x * mask).sum()`, or `torch.where(mask, x, 0.0).sum()` where `x` may hold NaN. A mean over the kept rows divides by
  `mask.sum().clamp(min=1)`; its last bits differ from `x[mask].mean()`.
- The same mask over many steps: take the positions once before the loop, then `x.index_select(0, positions)` or `gather`. The ascending
  positions give the same elements in the same order.
- A known count: `torch.nonzero_static(mask, size=n)`.
- Groups (experts, classes): sort by group once, or `index_add_` and a one-hot product.

## Not flagged
Integer indices on the device; slices; a boolean mask on the host used for reading; host tensors and NumPy arrays; `torch.where` with
three arguments; `x[mask] = number`, which torch turns into `masked_fill`.

## Evidence
NVIDIA H200, torch 2.11:
- `x[m]`: 1 wait
- `X[mrow]`: 1 wait
- `X[:, mcol]`: 1 wait
- `x.masked_select(m)`: 1 wait
- `torch.masked_select(x, m)`: 1 wait
- `x[hm]`: free
- `x[idx]`: free
- `x.masked_fill(m, 0.0)`: free

## How to confirm
`torch.cuda.set_sync_debug_mode("warn")` reports the line.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.rule import Example, Problem, Rule
from hostlint.wording import text, waits, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    return Problem(f"{waits(fact, whole(node))} to count the true elements; {_instead(node)}")


def _instead(node: cst.BaseExpression) -> str:
    import libcst as cst

    rest = "or take the positions once before the loop and use `index_select` or `gather`"
    match node:
        case cst.Subscript(value=base, slice=[cst.SubscriptElement(slice=cst.Index(value=mask))]):
            return f"keep the full size (`torch.where({text(mask)}, {text(base)}, 0.0)`, `x * mask`), {rest}"
    return f"keep the full size (`torch.where(mask, x, 0.0)`, `x * mask`), {rest}"


RULE = Rule(
    code="HL111",
    name="boolean-mask-read",
    summary="reading through a boolean mask on the device waits for the number of true elements",
    kinds=(FactKind.MASK_READ,),
    check=check,
    examples=(
        Example(
            bad="""\
import torch

net = torch.nn.Linear(16, 16).cuda()


def fit(batches, opt):
    for x, valid in batches:
        out = net(x.cuda(non_blocking=True))
        valid = valid.cuda(non_blocking=True).bool()
        out[valid].square().sum().backward()  # expect
        opt.step()
        opt.zero_grad()
""",
            good="""\
import torch

net = torch.nn.Linear(16, 16).cuda()


def fit(batches, opt):
    for x, valid in batches:
        out = net(x.cuda(non_blocking=True))
        valid = valid.cuda(non_blocking=True).bool()
        torch.where(valid[:, None], out.square(), 0.0).sum().backward()
        opt.step()
        opt.zero_grad()
""",
        ),
        Example(
            bad="""\
import torch
from torch import nn


class Experts(nn.Module):
    def __init__(self, width: int, count: int):
        super().__init__()
        self.gate = nn.Parameter(torch.zeros(width, count))
        self.bank = nn.Parameter(torch.zeros(count, width, width))

    def forward(self, x):
        chosen = (x @ self.gate).argmax(-1)
        out = []
        for e in range(self.bank.shape[0]):
            out.append(x[chosen == e] @ self.bank[e])  # expect
        return torch.cat(out)
""",
            good="""\
import torch
from torch import nn


class Experts(nn.Module):
    def __init__(self, width: int, count: int):
        super().__init__()
        self.gate = nn.Parameter(torch.zeros(width, count))
        self.bank = nn.Parameter(torch.zeros(count, width, width))

    def forward(self, x):
        chosen = (x @ self.gate).argmax(-1)
        out = torch.zeros_like(x)
        for e in range(self.bank.shape[0]):
            out = torch.where((chosen == e)[:, None], x @ self.bank[e], out)
        return out
""",
        ),
        Example(
            bad="""\
import torch


def decode(model, hidden, steps: int):
    hidden = hidden.to("cuda")
    picture = hidden.abs().sum(-1) > 0
    for _ in range(steps):
        hidden = model(hidden)
        pixels = torch.masked_select(hidden, picture[..., None])  # expect
        model.show(pixels)
        hidden[picture] = 0.0
    return hidden
""",
            good="""\
import torch


def decode(model, hidden, steps: int):
    hidden = hidden.to("cuda")
    picture = hidden.abs().sum(-1) > 0
    rows, columns = picture.nonzero(as_tuple=True)
    for _ in range(steps):
        hidden = model(hidden)
        pixels = hidden[rows, columns]
        model.show(pixels)
        hidden[picture] = 0.0
    return hidden
""",
        ),
    ),
)
