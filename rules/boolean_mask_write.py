"""Writing a tensor through a boolean mask: `x[mask] = t`, `x[mask] *= v`, `index_put_((mask,), t)`.

## Why it costs
A tensor value has to be laid out over the true elements, so torch runs `nonzero` and the host waits. Arithmetic through a mask is a read
and a write and waits for both. A Python number is different: torch turns `x[mask] = 0.0` into `masked_fill`, which waits for nothing.

## Instead
- `x = torch.where(mask, t, x)`, `x = torch.where(mask, x * v, x)`: the same bits for `*` and `/`, NaN and signed zeros included.
  `masked_fill(mask, 0)` is not the same as multiplying by zero.
- `where` makes a new tensor: if other names share the memory of `x`, use `x.copy_(torch.where(...))`. In a differentiable place a NaN
  in the branch that is not taken reaches the gradient.
- Values packed to the true elements (`x[mask] = packed`): `x.masked_scatter(mask, packed)`.

## Not flagged
A Python number or a 0-dim host tensor as the value; slices and integer positions on the device; `masked_fill`, `masked_scatter`; host
tensors and NumPy arrays.

## Evidence
NVIDIA H200, torch 2.11:
- `x[m] = s`: 1 wait
- `x[m] *= 0.0`: 2 waits
- `x[m] += y[m]`: 3 waits
- `x[m] = y[m]`: 2 waits
- `X[mrow] = Xrow`: 1 wait
- `x[m] = 0.0`: free
- `X[mrow, 0] = 0.0`: free
- `x.masked_scatter(m, y)`: free
- `x[idx] = y[idx]`: free

## How to confirm
`torch.cuda.set_sync_debug_mode("warn")` reports the line, twice for arithmetic in place. On the CPU a dispatch mode cannot tell the free
form from the one that waits.
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
    reads = f"the write through the mask in `{whole(node)}` makes the host wait for the device {when(fact)}"
    return Problem(f"{reads}; use {_instead(node)} (in `copy_` where other names share the memory)")


def _instead(node: cst.BaseExpression) -> str:
    import libcst as cst

    match node:
        case cst.Subscript(value=base, slice=[cst.SubscriptElement(slice=cst.Index(value=mask))]):
            return f"`torch.where({text(mask)}, new, {text(base)})`"
    return "`torch.where(mask, new, old)`"


RULE = Rule(
    code="HL112",
    name="boolean-mask-write",
    summary="writing a tensor, or in place arithmetic, through a boolean mask on the device waits",
    kinds=(FactKind.MASK_WRITE,),
    check=check,
    examples=(
        Example(
            bad="""\
import torch


def penalise(logits, seen, factor: float):
    logits[seen] /= factor  # expect
    logits[~torch.isfinite(logits)] = -1e4
    return logits


def decode(model, ids, vocabulary: int, steps: int):
    ids = ids.cuda()
    seen = torch.zeros(ids.shape[0], vocabulary, dtype=torch.bool, device="cuda")
    for _ in range(steps):
        logits = penalise(model(ids)[:, -1], seen, 1.3)
        ids = logits.argmax(-1, keepdim=True)
        seen.scatter_(1, ids, True)
    return ids
""",
            good="""\
import torch


def penalise(logits, seen, factor: float):
    logits = torch.where(seen, logits / factor, logits)
    logits[~torch.isfinite(logits)] = -1e4
    return logits


def decode(model, ids, vocabulary: int, steps: int):
    ids = ids.cuda()
    seen = torch.zeros(ids.shape[0], vocabulary, dtype=torch.bool, device="cuda")
    for _ in range(steps):
        logits = penalise(model(ids)[:, -1], seen, 1.3)
        ids = logits.argmax(-1, keepdim=True)
        seen.scatter_(1, ids, True)
    return ids
""",
        ),
        Example(
            bad="""\
import torch
from torch import nn


class DropLabels(nn.Module):
    def __init__(self, classes: int, width: int):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(classes, width))
        self.blank = nn.Parameter(torch.zeros(width))

    def forward(self, labels):
        rows = self.table[labels]
        gone = self.table.sum(-1) < 0
        rows[gone] = self.blank  # expect
        rows[:, 0] = 0.0
        return rows
""",
            good="""\
import torch
from torch import nn


class DropLabels(nn.Module):
    def __init__(self, classes: int, width: int):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(classes, width))
        self.blank = nn.Parameter(torch.zeros(width))

    def forward(self, labels):
        rows = self.table[labels]
        gone = self.table.sum(-1) < 0
        rows = torch.where(gone[:, None], self.blank, rows)
        rows[:, 0] = 0.0
        return rows
""",
        ),
        Example(
            bad="""\
import torch


def simulate(physics, states, steps: int):
    states = states.to("cuda")
    start = states.clone()
    for _ in range(steps):
        states = states + physics(states)
        fallen = states[:, 2] < 0.1
        states[fallen] = start[fallen]  # expect
        states.index_put_((fallen,), start.mean(0))  # expect
        states[fallen, 3] = 0.0
    return states
""",
            good="""\
import torch


def simulate(physics, states, steps: int):
    states = states.to("cuda")
    start = states.clone()
    for _ in range(steps):
        states = states + physics(states)
        fallen = states[:, 2] < 0.1
        states = torch.where(fallen[:, None], start, states)
        states = torch.where(fallen[:, None], start.mean(0), states)
        states[fallen, 3] = 0.0
    return states
""",
            also=("HL111",),
        ),
    ),
)
