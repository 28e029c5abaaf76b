"""`torch.equal` or `allclose` of device tensors on a step's path.

## Why it costs
Both return a Python bool, so they compare on the device and then wait for the answer, like `.item()`.

## Instead
- Keep the answer on the device: `(a == b).all()`, `torch.isclose(a, b).all()`, combined over the steps and read once.
- "Has the input changed?": compare identity together with `tensor._version` (keep a strong reference), or a host counter that the writer
  advances. `data_ptr` alone may belong to a new tensor at an old address.
- An assertion about an invariant: behind a debug switch, or every N steps.

## Not flagged
`==` and `torch.eq`, whose result stays a tensor; `is`; `torch.equal` of host tensors; `shape` comparisons; tests.

## Evidence
NVIDIA H200, torch 2.11:
- `x.equal(y)`: 1 wait
- `x.allclose(y)`: 1 wait
- `bool(x.eq(y).all())`: 1 wait
- `x.eq(y).all()`: free
- `s == 1.0`: free

## How to confirm
`torch.cuda.set_sync_debug_mode("warn")` reports the line.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.rule import Example, Problem, Rule
from hostlint.wording import waits, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    return Problem(f"{waits(fact, whole(node))}; {_instead(node)}")


def _instead(node: cst.BaseExpression) -> str:
    import libcst as cst

    rest = "or decide by host facts (identity with a strong reference, a counter that the writer advances)"
    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name("allclose"))):
            return f"keep `torch.isclose(...).all()` on the device and read it every N steps, {rest}"
    return f"keep `(a == b).all()` on the device and read it every N steps, {rest}"


RULE = Rule(
    code="HL118",
    name="device-equality",
    summary="`torch.equal` or `allclose` compares device tensors on a step's path",
    kinds=(FactKind.EQUALITY,),
    check=check,
    examples=(
        Example(
            bad="""\
import torch


def denoise(unet, x, prompt, steps: int):
    prompt = prompt.to("cuda")
    last = torch.zeros_like(prompt)
    keys = None
    for i in range(steps):
        if keys is None or not torch.equal(prompt, last):  # expect
            keys = unet.project(prompt)
            last = prompt
        x = unet(x, keys, i)
    return x
""",
            good="""\
import torch


def denoise(unet, x, prompt, steps: int):
    prompt = prompt.to("cuda")
    last = None
    keys = None
    for i in range(steps):
        if last is not prompt:
            keys = unet.project(prompt)
            last = prompt
        x = unet(x, keys, i)
    return x
""",
        ),
        Example(
            bad="""\
import torch
from torch import nn


class Tied(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.one = nn.Parameter(torch.zeros(width))
        self.two = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        same = self.one.allclose(self.two)  # expect
        near = torch.isclose(self.one, self.two)
        return x * near, same
""",
            good="""\
import torch
from torch import nn


class Tied(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.one = nn.Parameter(torch.zeros(width))
        self.two = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        near = torch.isclose(self.one, self.two)
        return x * near, near.all()
""",
        ),
        Example(
            bad="""\
import torch


def relax(field, rounds: int):
    state = torch.ones(128, device="cuda")
    for _ in range(rounds):
        fresh = state * 0.5 + field(state)
        settled = fresh.equal(state)  # expect
        field.note(settled, fresh.shape == state.shape)
        state = fresh
    return state
""",
            good="""\
import torch


def relax(field, rounds: int):
    state = torch.ones(128, device="cuda")
    for _ in range(rounds):
        fresh = state * 0.5 + field(state)
        settled = (fresh == state).all()
        field.note(settled, fresh.shape == state.shape)
        state = fresh
    return state
""",
        ),
    ),
)
