"""A device scalar given to an argument for which torch wants a number: `alpha=`, `torch.full`, `masked_fill`.

## Why it costs
Some arguments are numbers in torch's C++ signature. A tensor given there is read with `.item()` before the kernel is launched, so a
value that never leaves the device in the source does leave it.

## Instead
- `alpha=t`, `value=t`: multiply, as in `g - w * t`. The `alpha` form may fuse multiply and add, so the last bit can differ.
- `torch.full((n,), t)`: `torch.empty((n,)).fill_(t)`, which takes the tensor as it is, or `t.to(dtype).expand(n)`. An expanded tensor
  shares its memory: clone it where it is written later.
- `x.masked_fill(m, t)`: `torch.where(m, t, x)`. A 0-dim tensor of the same category does not change the dtype of `x`.
- `torch.arange(t)`, `linspace` bounds: the host's own number, or arithmetic on a range of fixed size.

`hostlint fix` fills empty memory with the tensor: the same size, dtype, strides and memory of its own; the dtype that `torch.full` takes
from an integer or a truth value is written out. Exact where the scalar is proved to be a 0-dim integer or truth value that the dtype can
hold; else for review, for `full` raises where a number does not fit (NaN in an integer), and a kernel does not. Also for review: `where`
for `masked_fill`, and a product for `alpha=` and `value=`, whose last bit may differ.

## Not flagged
Python numbers; 0-dim host tensors; arguments that take tensors: `clamp(max=t)`, `fill_(t)`, `x * t`, `torch.where`, `lerp`.

## Evidence
NVIDIA H200, torch 2.11:
- `torch.full((4,), s, device=d)`: 1 wait
- `torch.arange(n, device=d)`: 1 wait
- `torch.linspace(s, 1, 10, device=d)`: 1 wait
- `x.masked_fill(m, s)`: 1 wait
- `x.masked_fill(m, torch.tensor(0.0))`: free
- `torch.where(m, x, s)`: free
- `x.fill_(s)`: free
- `x.clamp(min=s)`: free
- `x.mul(s)`: free

## How to confirm
`torch.cuda.set_sync_debug_mode("warn")` reports the call; a dispatch mode on CPU tensors sees only the finished op.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.fix.scalar_arguments import scalar_argument_fix
from hostlint.model import Applicability
from hostlint.rule import Example, Problem, Rule
from hostlint.wording import text, when, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    return Problem(f"`{whole(node)}` reads a device scalar as a number {when(fact)}, and the host waits; {_instead(node)}")


def _instead(node: cst.BaseExpression) -> str:
    import libcst as cst

    match node:
        case cst.Call(func=cst.Attribute(value=base, attr=cst.Name("masked_fill" | "masked_fill_"))):
            mask, fill = _two(node, "mask", "value")
            return f"`torch.where({mask}, {fill}, {text(base)})` takes the tensor as it is"
        case cst.Call(func=cst.Attribute(attr=cst.Name("full" | "full_like" | "new_full"))):
            return "expand the scalar to the size (`t.to(dtype).expand(size)`; clone it where it is written)"
        case cst.Call(args=arguments) if any(a.keyword is not None and a.keyword.value in {"alpha", "value", "beta"} for a in arguments):
            return "multiply with the tensor instead of passing it as a factor (the last bit may differ from the fused form)"
        case cst.Call(func=cst.Attribute(attr=cst.Name("arange" | "linspace" | "logspace"))):
            return "give it the host's own number, or scale a range of fixed size"
    return "give it a host number, or use an op that takes the tensor (`where`, `*`, `clamp`)"


def _two(call: cst.Call, first: str, second: str) -> tuple[str, str]:
    """The source of two arguments, given by place or by keyword."""
    named = {a.keyword.value: text(a.value) for a in call.args if a.keyword is not None}
    placed = [text(a.value) for a in call.args if a.keyword is None and not a.star]
    words = [named[name] if name in named else placed.pop(0) if placed else name for name in (first, second)]
    return words[0], words[1]


RULE = Rule(
    code="HL108",
    name="device-scalar-argument",
    summary="a device scalar is passed where torch reads it as a number",
    kinds=(FactKind.SCALAR_ARGUMENT,),
    check=check,
    fix=scalar_argument_fix,
    examples=(
        Example(
            bad="""\
import torch


class Projected(torch.optim.Optimizer):
    def __init__(self, params, lr: float):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                grad = p.grad
                share = (p * grad).sum() / (p * p).sum()
                grad = torch.sub(grad, p, alpha=share)  # expect
                p.add_(grad, alpha=-group["lr"])
""",
            good="""\
import torch


class Projected(torch.optim.Optimizer):
    def __init__(self, params, lr: float):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                grad = p.grad
                share = (p * grad).sum() / (p * p).sum()
                grad = torch.sub(grad, p * share)
                p.add_(grad, alpha=-group["lr"])
""",
            fix=Applicability.REVIEW,
        ),
        Example(
            bad="""\
import torch


def distil(student, x, count: int):
    ticks = torch.linspace(999, 0, count, device="cuda")
    for tick in ticks:
        batch_ticks = torch.full((x.shape[0],), tick, dtype=torch.long, device="cuda")  # expect
        x = student(x, batch_ticks, torch.full((1,), 0.5, device="cuda"))
    return x
""",
            good="""\
import torch


def distil(student, x, count: int):
    ticks = torch.linspace(999, 0, count, device="cuda")
    for tick in ticks:
        batch_ticks = torch.empty((x.shape[0],), dtype=torch.long, device="cuda").fill_(tick)
        x = student(x, batch_ticks, torch.full((1,), 0.5, device="cuda"))
    return x
""",
            fix=Applicability.REVIEW,
        ),
        Example(
            bad="""\
import torch
from torch import nn


class Inpaint(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.level = nn.Parameter(torch.zeros(()))
        self.mix = nn.Parameter(torch.zeros(width))

    def forward(self, depth):
        hole = self.mix < 0
        filled = self.mix.masked_fill(hole, self.level)  # expect
        return depth * filled.masked_fill(hole, 0.0)
""",
            good="""\
import torch
from torch import nn


class Inpaint(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.level = nn.Parameter(torch.zeros(()))
        self.mix = nn.Parameter(torch.zeros(width))

    def forward(self, depth):
        hole = self.mix < 0
        filled = torch.where(hole, self.level, self.mix)
        return depth * filled.masked_fill(hole, 0.0)
""",
            fix=Applicability.REVIEW,
        ),
        Example(
            bad="""\
import torch


def decode(model, token, limit: int):
    filled = torch.zeros((), dtype=torch.long, device="cuda")
    for _ in range(limit):
        filled += 1
        positions = torch.arange(filled, device="cuda")  # expect
        token = model(token, positions)
    return token
""",
            good="""\
import torch


def decode(model, token, limit: int):
    everything = torch.arange(limit, device="cuda")
    for filled in range(1, limit + 1):
        positions = everything[:filled]
        token = model(token, positions)
    return token
""",
        ),
    ),
)
