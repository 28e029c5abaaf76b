"""`torch.tensor([t0, t1])` over device scalars.

## Why it costs
The constructor takes its elements as Python numbers, so the host reads every one of them and waits each time; with `device=` the result
is then uploaded again, which is one more wait.

## Instead
- `torch.stack([t0, t1])` builds the same tensor on the device. It keeps the gradient, which `torch.tensor` drops.
- A Python number among the elements: `torch.full_like(t0, 0.5)` or `torch.ones_like(t0)` in its place.
- Mixed or half-precision elements: `torch.tensor` gives float32 for `[bf16 scalar, 1.0]`, `stack`
  with `full_like` keeps bf16, with `torch.full((), 1.0)` it gives what the list gave.

`hostlint fix` stacks: numbers among the elements become `torch.full((), 0.5, ...)`, `device=` and `dtype=` a `.to(...)` after it. Both
promote the elements' dtypes alike (tried for all pairs), an element goes through a Python number without loss, and the stack has memory of
its own, as the list's tensor has. Exact where every element is proved to be a 0-dim tensor from one source and no gradient can pass
(`.detach()` sees to it where autograd may be on). For review: elements that are only likely scalars; no `device=`, for then the result was
on the host. `[t] * n` becomes `t.repeat(n)`; a list that numbers are appended to goes through a small function of the module.

## Not flagged
Lists of Python numbers, `shape` or host tensors; `torch.stack`, `torch.cat`, builtin `sum` over device scalars.

## Evidence
NVIDIA H200, torch 2.11:
- `torch.tensor([x[0], x[1]])`: 2 waits
- `torch.tensor([x[0], x[1]], device=d)`: 3 waits
- `torch.stack([x[0], x[1]])`: free
- `sum([x[0], x[1]])`: free

## How to confirm
`torch.cuda.set_sync_debug_mode("warn")` reports one wait per element; a dispatch mode on CPU tensors sees none of them.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.fix.scalars import tensor_to_stack
from hostlint.model import Applicability
from hostlint.rule import Example, Problem, Rule
from hostlint.syntax import operand
from hostlint.wording import short, text, when, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact

def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    reads = f"`{whole(node)}` reads its device scalars one by one {when(fact)}, and the host waits for each"
    return Problem(f"{reads}; {_instead(node, fact.subject)} (on the device, with the gradient and dtype of its parts)")


def _instead(node: cst.BaseExpression, subject: str) -> str:
    import libcst as cst

    match node:
        case cst.Call(args=[cst.Arg(value=cst.List(elements=[cst.Element(value=one)])), *_]):
            return f"use `{operand(one)}.reshape(1)`"
        case cst.Call(args=[cst.Arg(value=cst.BinaryOperation(cst.List(elements=[cst.Element(value=one)]), cst.Multiply(), count)), *_]):
            return f"use `{operand(one)}.expand({text(count)})`"
    return f"use `torch.stack({_elements(node, subject)})`, with `full_like` for Python numbers among them"


def _elements(node: cst.BaseExpression, subject: str) -> str:
    import libcst as cst

    match node:
        case cst.Call(args=[cst.Arg(value=elements), *_]):
            return text(elements)
    return short(subject)


RULE = Rule(
    code="HL109",
    name="tensor-of-device-scalars",
    summary="`torch.tensor` over device scalars reads each of them",
    kinds=(FactKind.TENSOR_OF_TENSORS,),
    check=check,
    fix=tensor_to_stack,
    examples=(
        Example(
            bad="""\
import torch


def corrector(model, x, steps: int):
    lam = torch.linspace(4.0, -4.0, steps + 2, device="cuda")
    for i in range(2, steps):
        near = (lam[i - 1] - lam[i]) / (lam[i + 1] - lam[i])
        far = (lam[i - 2] - lam[i]) / (lam[i + 1] - lam[i])
        ratios = torch.tensor([near, far], device="cuda")  # expect
        x = model(x, ratios)
    return x
""",
            good="""\
import torch


def corrector(model, x, steps: int):
    lam = torch.linspace(4.0, -4.0, steps + 2, device="cuda")
    for i in range(2, steps):
        near = (lam[i - 1] - lam[i]) / (lam[i + 1] - lam[i])
        far = (lam[i - 2] - lam[i]) / (lam[i + 1] - lam[i])
        ratios = torch.stack([near, far]).detach().to("cuda")
        x = model(x, ratios)
    return x
""",
            fix=Applicability.EXACT,
            trials=("corrector(lambda x, ratios: x * ratios, torch.ones(2, requires_grad=True), 5)",),
        ),
        Example(
            bad="""\
import torch


class Adaptive(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {"lr": 1.0})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            norms = [p.grad.norm() for p in group["params"]]
            total = torch.tensor(norms).norm()  # expect
            torch._foreach_mul_(group["params"], 0.99)
        return total
""",
            good="""\
import torch


class Adaptive(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {"lr": 1.0})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            norms = [p.grad.norm() for p in group["params"]]
            total = torch.stack(norms).norm()
            torch._foreach_mul_(group["params"], 0.99)
        return total
""",
            fix=Applicability.REVIEW,
        ),
        Example(
            bad="""\
import torch
from torch import nn


class Affine(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(width))
        self.scale = nn.Parameter(torch.ones(width))
        self.bounds = torch.tensor([0.0, float(width)])

    def forward(self, x):
        stats = torch.as_tensor([self.shift.mean(), self.scale.mean()])  # expect
        return x * self.scale + self.shift, stats
""",
            good="""\
import torch
from torch import nn


class Affine(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(width))
        self.scale = nn.Parameter(torch.ones(width))
        self.bounds = torch.tensor([0.0, float(width)])

    def forward(self, x):
        stats = torch.stack([self.shift.mean(), self.scale.mean()])
        return x * self.scale + self.shift, stats
""",
            fix=Applicability.REVIEW,
        ),
    ),
)
