"""A device scalar where Python wants a host integer: an index, a slice bound, a shape, `range()`.

## Why it costs
`x[t]`, `x[:t]`, `range(t)` and `torch.zeros(t)` call `__index__` of the tensor, so the host waits for one integer. Each bound of a slice
is a read of its own. Slicing with device scalars does not keep the work on the device: it is the read.

## Instead
- Index with the host's own integer where the host counts anyway.
- `x.index_select(0, t.view(1))` gathers on the device. It copies, where `x[t]` gives a view: an in-place write no longer reaches `x`.
- A window of unknown length: keep the full length and mask with `torch.arange(n, device=x.device) < t`.
- A loop count or a size: compute it where the schedule is made, on the host, with the same float32 arithmetic, and keep a Python list.

`hostlint fix --review` writes `x[t]` as `x.index_select(0, t.view(1))[0]`, for a proved 0-dim integer `t` and where the function does not
write to the row: the same elements, in memory of their own. A negative `t` counts from the end in one form and is an error in the other;
a position that is not there is an assertion of the device instead of an IndexError.

## Not flagged
Host integers, `shape`, `len`; a device tensor of one or more dimensions as index, which gathers on the device; `index_select`, `gather`.

## Evidence
NVIDIA H200, torch 2.11:
- `x[n]`: 1 wait
- `x[:n]`: 1 wait
- `x[n:n+1]`: 2 waits
- `lst[n]`: 1 wait
- `range(n)`: 1 wait
- `torch.randn(n, device=d)`: 1 wait
- `x.narrow(0, n, 2)`: 1 wait
- `x[idx]`: free
- `torch.index_select(x, 0, n.reshape(1))`: free

## How to confirm
`torch.cuda.set_sync_debug_mode("warn")` reports the line once per bound.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.fix.device_rows import selected_row
from hostlint.model import Applicability
from hostlint.rule import Example, Problem, Rule
from hostlint.wording import text, waits, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    return Problem(f"{waits(fact, whole(node))} to learn an integer; {_instead(node)}")


def _instead(node: cst.BaseExpression) -> str:
    import libcst as cst

    match node:
        case cst.Subscript(slice=parts) if any(isinstance(part.slice, cst.Slice) for part in parts):
            return "slice with host integers, or keep the full length and mask with `torch.arange(...) < bound`"
        case cst.Subscript(value=base, slice=[cst.SubscriptElement(slice=cst.Index(value=index))]):
            return f"use the host's own integer, or `{text(base)}.index_select(0, {text(index)}.view(1))` (a copy, not a view)"
        case cst.Call(func=cst.Name("range")):
            return "keep the count as a host integer from where it is computed"
        case cst.Call():
            return "give it a host integer, or the largest size that can occur"
    return "use a host integer, or `index_select` and masks on the device"


RULE = Rule(
    code="HL107",
    name="device-index",
    summary="a device scalar is used as an index, slice bound, shape or range on a step's path",
    kinds=(FactKind.INDEX,),
    check=check,
    fix=selected_row,
    examples=(
        Example(
            bad="""\
import torch


def sample(policy, x, steps: int):
    sigmas = torch.linspace(1.0, 0.0, steps, device="cuda")
    index = torch.zeros((), dtype=torch.long, device="cuda")
    for i in range(steps):
        x = policy(x, sigmas[index])  # expect
        x = x + sigmas[i]
        index += 1
    return x
""",
            good="""\
import torch


def sample(policy, x, steps: int):
    sigmas = torch.linspace(1.0, 0.0, steps, device="cuda")
    index = torch.zeros((), dtype=torch.long, device="cuda")
    for i in range(steps):
        x = policy(x, sigmas.index_select(0, index.view(1))[0])
        x = x + sigmas[i]
        index += 1
    return x
""",
            fix=Applicability.REVIEW,
        ),
        Example(
            bad="""\
import torch
from torch import nn


class Window(nn.Module):
    def __init__(self, length: int):
        super().__init__()
        self.register_buffer("filled", torch.zeros((), dtype=torch.long, device="cuda"))
        self.cache = nn.Parameter(torch.zeros(length, 64, device="cuda"))

    def forward(self, x):
        recent = self.cache[: self.filled]  # expect
        first = self.cache[0:1]
        return x + recent.sum(0) + first
""",
            good="""\
import torch
from torch import nn


class Window(nn.Module):
    def __init__(self, length: int):
        super().__init__()
        self.register_buffer("filled", torch.zeros((), dtype=torch.long, device="cuda"))
        self.register_buffer("slots", torch.arange(length, device="cuda"))
        self.cache = nn.Parameter(torch.zeros(length, 64, device="cuda"))

    def forward(self, x):
        live = self.slots < self.filled
        first = self.cache[0:1]
        return x + (self.cache * live[:, None]).sum(0) + first
""",
        ),
        Example(
            bad="""\
import torch


def refine(solver, x, rounds: int):
    x = x.to("cuda")
    for _ in range(rounds):
        error = x - solver(x)
        substeps = (error.abs().max() * 8).long().clamp(min=1)
        for _ in range(substeps):  # expect
            x = solver.relax(x)
        x = x + torch.zeros(substeps, device="cuda").sum()  # expect
    return x
""",
            good="""\
import torch


def refine(solver, x, substeps: list[int]):
    x = x.to("cuda")
    for count in substeps:
        error = x - solver(x)
        for _ in range(count):
            x = solver.relax(x)
        x = x + error * torch.zeros(count, device="cuda").sum()
    return x
""",
        ),
    ),
)
