"""`x.to(...)`, `x.cpu()` or `x.cuda()` of a tensor as a statement of its own: the result is dropped.

## Why it costs
A module moves in place, a tensor does not: the call makes a copy, and the copy is thrown away. The name still stands for the tensor where
it was, so that the next operation fails with tensors on two devices, or silently runs on the host, while the copy itself was paid for.

## Instead
- `x = x.to(device, non_blocking=True)`.
- For what a module owns: register it (`register_buffer`), and it moves with the module.

## Not flagged
Modules, batches and other objects whose `to` works in place; values that are not known to be tensors; results that are assigned, returned
or passed on.

## Evidence
The meaning of `Tensor.to`. What the copy costs, on an NVIDIA H200 with torch 2.11:
- `h.cuda()`: 1 wait
- `x.cpu()`: 1 wait

## How to confirm
`print(x.device)` after the statement.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.rule import Example, Problem, Rule
from hostlint.wording import happens, receiver, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    moved = receiver(node, fact.subject)
    return Problem(
        f"`{whole(node)}` makes a copy {happens(fact)} and drops it, for a tensor does not move in place: assign it to `{moved}`"
    )


RULE = Rule(
    code="HL505",
    name="dropped-move",
    summary="the result of moving a tensor is dropped",
    kinds=(FactKind.DROPPED_MOVE,),
    check=check,
    examples=(
        Example(
            bad="""\
import torch


def noise(model, shape, steps: int):
    x = torch.randn(shape)
    x.to("cuda")  # expect
    for i in range(steps):
        x = model(x, i)
    return x
""",
            good="""\
import torch


def noise(model, shape, steps: int):
    model.to("cuda")
    x = torch.randn(shape, device="cuda")
    for i in range(steps):
        x = model(x, i)
    return x
""",
        ),
        Example(
            bad="""\
import torch


def score(model, ids: torch.Tensor):
    ids.cuda()  # expect
    return model(ids)
""",
            good="""\
import torch


def score(model, tokenizer, text: str):
    batch = tokenizer(text, return_tensors="pt")
    batch.to("cuda")
    return model(**batch)
""",
        ),
        Example(
            bad="""\
import torch


def weigh(model, x: torch.Tensor):
    weights = torch.linspace(0.0, 1.0, 8)
    weights.to(x.device, torch.float16)  # expect
    return model(x) * weights
""",
            good="""\
import torch


def weigh(model, x: torch.Tensor):
    weights = torch.linspace(0.0, 1.0, 8, device=x.device, dtype=torch.float16)
    return model(x) * weights
""",
        ),
    ),
)
