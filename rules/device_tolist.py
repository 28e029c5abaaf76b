"""`.tolist()` of a device tensor on a step's path.

## Why it costs
The host waits for the device, copies the tensor and builds a Python object for every element. As a cache key it costs more than most
tables that such a cache keeps, and hashing thousands of numbers comes on top.

## Instead
- Key a cache by what the host knows (length, offset, dtype, device), or compute from the device values directly.
- Sizes and offsets that were Python numbers before they were uploaded: pass the Python numbers along.
- A schedule: one `.tolist()` before the loop, then index by the step counter.
- Tokens to show: convert once per request, or one step late through a pinned slot and its event.

`hostlint fix --review` hands a list in from the function whose loop makes the calls, where it is worked out from nothing but parameters,
for which these calls pass names, attributes or constants that stay the same in the loop, and all calls on a step's path are seen in this
file: the list is read once before the loop, the function gets one more parameter, and reads the list itself where a call leaves that out,
so that every other call does what it did. For review: nothing may write into what is passed during the loop, and the object that is called
must be of this class. The list is the same one, element for element, because the same expression is read of the same tensor; the calls
share it, and none of them may change it.

## Not flagged
Lists made from NumPy arrays, host tensors or `shape`; one list per request outside of loops; iteration over a device tensor with `for`,
`unbind` or `list()`, which only makes views.

## Evidence
NVIDIA H200, torch 2.11:
- `x.tolist()`: 1 wait
- `list(x)`: free
- `[v for v in x]`: free
- `x.unbind()`: free

## How to confirm
`torch.cuda.set_sync_debug_mode("warn")` reports the line; a dispatch mode on CPU tensors does not see `tolist`.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.fix.handed_in import handed_in
from hostlint.model import Applicability
from hostlint.rule import Example, Problem, Rule
from hostlint.wording import receiver, waits, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    return Problem(f"{waits(fact, whole(node))}; {_instead(receiver(node, fact.subject))}")


def _instead(subject: str) -> str:
    return (
        f"where the host made `{subject}`, pass those Python numbers along; else keep it on the device, or call `.tolist()` once before or"
        " after the loop"
    )


RULE = Rule(
    code="HL105",
    name="device-tolist",
    summary="`.tolist()` reads a device tensor on a step's path",
    kinds=(FactKind.TOLIST,),
    check=check,
    fix=handed_in,
    examples=(
        Example(
            bad="""\
import torch
from torch import nn


class Split(nn.Module):
    def __init__(self, groups: int):
        super().__init__()
        self.counts = nn.Parameter(torch.ones(groups), requires_grad=False)

    def forward(self, x):
        sizes = self.counts.long().tolist()  # expect
        rows = list(x.shape)
        return [part.mean(0) for part in x.view(rows).split(sizes)]
""",
            good="""\
import torch
from torch import nn


class Split(nn.Module):
    def __init__(self, groups: int):
        super().__init__()
        self.counts = [1] * groups

    def forward(self, x):
        rows = list(x.shape)
        return [part.mean(0) for part in x.view(rows).split(self.counts)]
""",
        ),
        Example(
            bad="""\
import torch
from torch import nn


class Padded(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.head = nn.Linear(width, width)

    def forward(self, x, mask):
        lengths = mask.sum(1).tolist()  # expect
        parts = [self.head(x[i, :length]).mean(0) for i, length in enumerate(lengths)]
        return x + torch.stack(parts)[:, None]


def denoise(model: Padded, x, mask, steps: int):
    for _ in range(steps):
        x = x - model(x, mask) / steps
    return x
""",
            good="""\
import torch
from torch import nn


class Padded(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.head = nn.Linear(width, width)

    def forward(self, x, mask, lengths=None):
        if lengths is None:
            lengths = mask.sum(1).tolist()
        parts = [self.head(x[i, :length]).mean(0) for i, length in enumerate(lengths)]
        return x + torch.stack(parts)[:, None]


def denoise(model: Padded, x, mask, steps: int):
    lengths = mask.sum(1).tolist()
    for _ in range(steps):
        x = x - model(x, mask, lengths=lengths) / steps
    return x
""",
            fix=Applicability.REVIEW,
        ),
        Example(
            bad="""\
import torch

TABLES = {}


def rotate(positions, x):
    key = tuple(positions.tolist())  # expect
    if key not in TABLES:
        TABLES[key] = positions[:, None].float().cos()
    return x * TABLES[key]


def denoise(blocks, x, count: int):
    positions = torch.arange(count, device="cuda")
    for block in blocks:
        x = block(rotate(positions, x))
    return x
""",
            good="""\
import torch

TABLES = {}


def rotate(count: int, x):
    if count not in TABLES:
        TABLES[count] = torch.arange(count, device="cuda")[:, None].float().cos()
    return x * TABLES[count]


def denoise(blocks, x, count: int):
    for block in blocks:
        x = block(rotate(count, x))
    return x
""",
        ),
        Example(
            bad="""\
import torch


def stream(model, code, frames: int, show):
    code = code.to("cuda")
    for _ in range(frames):
        code = model(code).argmax(-1)
        show(code.flatten().tolist())  # expect
""",
            good="""\
import torch


def stream(model, code, frames: int, show):
    code = code.to("cuda")
    kept = []
    for _ in range(frames):
        code = model(code).argmax(-1)
        kept.append(code.flatten())
    show(torch.stack(kept).tolist())
""",
        ),
    ),
)
