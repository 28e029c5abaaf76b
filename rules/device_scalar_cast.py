"""A device tensor turned into a Python number: `float(t)`, `int(t)`, `math.isfinite(t)`, `"%f" % t`.

## Why it costs
Python asks the tensor for a number through `__float__`, `__int__` or `__index__`; torch answers with `.item()`. The host waits for all
queued kernels although no `.item()` is written, which is why these reads outlive a clean-up of the visible ones.

## Instead
- Compute with tensors: `t.sqrt()` for `math.sqrt(t)`, `torch.isfinite(t)` for `math.isfinite(t)`, `t.clamp(...)` for `min` and `max`.
- A number that the host knew first (a length, a count, a step) is passed as a Python int beside the tensor. Keep the device counter too
  where a CUDA graph replays the step: a host int would be baked in.
- A check for finite values: combine the flags on the device and read them every N steps, before a checkpoint at the latest.

`hostlint fix` moves a cast as it moves `item()` (see device-item): steps of a schedule are read once before the loop, sums and lists once
after it, a check that raises combines its flags on the device. `float(t)` and `int(t)` make of the list's number what they make of the
tensor's.

## Not flagged
Casts of Python numbers, NumPy values, host tensors, `shape` and `len`; `t.float()` and `t.int()`, which convert on the device.

## Evidence
NVIDIA H200, torch 2.11:
- `int(s)`: 1 wait
- `complex(s)`: 1 wait
- `range(int(n))`: 1 wait
- `x.max()`: free
- `torch.isnan(x).any()`: free

## How to confirm
`torch.cuda.set_sync_debug_mode("warn")` reports the cast; patching `Tensor.item` does not see it, for it runs in C++.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.fix.debug_lines import guarded_debug_line
from hostlint.fix.flags import checked_after
from hostlint.fix.reads import moved_read
from hostlint.fix.row_reads import row_read
from hostlint.model import Applicability
from hostlint.rule import Example, Problem, Rule
from hostlint.wording import waits, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact
    from hostlint.fix.place import Place
    from hostlint.model import Fix


SAME_IN_TORCH = frozenset({"atan2", "ceil", "cos", "exp", "expm1", "floor", "hypot", "log", "log10", "log1p", "log2", "pow", "sin", "sqrt"})


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    return Problem(f"{waits(fact, whole(node))}; {_instead(node, fact.subject)}")


def _instead(node: cst.BaseExpression, subject: str) -> str:
    import libcst as cst

    match node:
        case cst.Call(func=cst.Attribute(value=cst.Name("math"), attr=cst.Name("isfinite" | "isnan" | "isinf" as test))):
            return f"combine `torch.{test}({subject})` on the device over the steps and read the flag every N steps"
        case cst.Call(func=cst.Attribute(value=cst.Name("math"), attr=cst.Name(function))) if function in SAME_IN_TORCH:
            return f"use `torch.{function}`, which stays on the device"
        case cst.Call(func=cst.Name("int")):
            return f"pass the number as a host int from where `{subject}` was made, or keep it a tensor"
        case cst.BinaryOperation():
            return f"format `{subject}` only behind the logging guard or every N steps"
    return f"keep `{subject}` a tensor (detached, sums in float64) and convert it after the loop or every N steps"


def fix(place: Place) -> Fix | None:
    return guarded_debug_line(place) or moved_read(place) or row_read(place) or checked_after(place)


RULE = Rule(
    code="HL102",
    name="device-scalar-cast",
    summary="`float()`, `int()` or a `math` function reads a device tensor on a step's path",
    kinds=(FactKind.SCALAR_CAST,),
    check=check,
    fix=fix,
    examples=(
        Example(
            bad="""\
import torch


def fit(optimizer, model, batches):
    losses = []
    for batch in batches:
        loss = model(batch.to("cuda")).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))  # expect
    return losses
""",
            good="""\
import torch


def fit(optimizer, model, batches):
    losses = []
    for batch in batches:
        loss = model(batch.to("cuda")).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach().to(torch.float64, copy=True))
    losses[:] = torch.stack(losses).tolist() if losses else []
    return losses
""",
            fix=Applicability.REVIEW,
        ),
        Example(
            bad="""\
import torch
from torch import nn


class Pool(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x, lengths):
        width = int(lengths.cuda().max())  # expect
        return (x[:, :width] * self.scale).sum(1) / float(x.shape[-1])
""",
            good="""\
import torch
from torch import nn


class Pool(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x, lengths, width: int):
        return (x[:, : int(width)] * self.scale).sum(1) / float(x.shape[-1])
""",
        ),
        Example(
            bad="""\
import math

import torch


def clip_all(model, batches, optimizer, limit: float):
    for batch in batches:
        model(batch.cuda()).sum().backward()
        norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
        if math.isfinite(norm):  # expect
            optimizer.step()
        scale = math.sqrt(norm) / math.sqrt(limit)  # expect
        print("scale %.3f" % scale)
        optimizer.zero_grad()
""",
            good="""\
import math

import torch


def clip_all(model, batches, optimizer, limit: float):
    broken = torch.zeros((), dtype=torch.bool, device="cuda")
    for batch in batches:
        model(batch.cuda()).sum().backward()
        norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
        broken |= ~torch.isfinite(norm)
        scale = norm.sqrt() / math.sqrt(limit)
        for p in model.parameters():
            p.grad.div_(scale)
        optimizer.step()
        optimizer.zero_grad()
    return broken
""",
        ),
        Example(
            bad="""\
import torch


class Annealed(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {"lr": 1.0})
        self.seen = torch.zeros((), device="cuda")

    @torch.no_grad()
    def step(self, closure=None):
        self.seen += 1
        text = "step %d" % self.seen  # expect
        for group in self.param_groups:
            group["lr"] = float(group["lr"]) * 0.999
        return text
""",
            good="""\
import torch


class Annealed(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {"lr": 1.0})
        self.seen = 0

    @torch.no_grad()
    def step(self, closure=None):
        self.seen += 1
        text = "step %d" % self.seen
        for group in self.param_groups:
            group["lr"] = float(group["lr"]) * 0.999
        return text
""",
        ),
        Example(
            bad="""\
import torch


def denoise(model, x, steps: int):
    ticks = torch.linspace(999, 0, steps, device="cuda").bfloat16().float()
    ticks = torch.where(ticks > 500, ticks, ticks * 0.5)
    for t in ticks:
        rate = torch.full((), float(t)) / 1000  # expect
        x = model(x, t, rate.item())
    return x
""",
            good="""\
import torch


def denoise(model, x, steps: int):
    ticks = torch.linspace(999, 0, steps, device="cuda").bfloat16().float()
    ticks = torch.where(ticks > 500, ticks, ticks * 0.5)
    for t, t_value in zip(ticks, ticks.tolist()):
        rate = torch.full((), float(t_value)) / 1000
        x = model(x, t, rate.item())
    return x
""",
            fix=Applicability.EXACT,
            trials=("denoise(lambda x, t, rate: x * rate + t, torch.ones(3), 9)", "denoise(None, 1, 0)"),
        ),
    ),
)
