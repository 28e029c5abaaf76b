"""A pinned buffer is filled again while its non-blocking copy to the device may still be running.

## Why it costs
It costs right data. A copy from pinned memory with `non_blocking=True` only starts when the device gets to it, and reads the buffer then. A
loop that refills the buffer at once overwrites what the step before was promised; the model computes on a mixture and nothing reports it.

## Instead
- A ring of two or more pinned buffers with an event each: wait for the slot's event (`slot.copied.synchronize()`), fill it, copy, record.
  The wait is for the copy of some steps ago and returns at once.
- `DataLoader(pin_memory=True)` makes fresh pinned batches, which torch keeps until their copies have ended.
- One buffer is enough where the loop waits for the device anyway (it reads a loss or a token in every round).

## Not flagged
Loops with a wait for a stream, an event or a device value in any round; a slot chosen by an index; a buffer that is made in the same round;
pageable sources (torch stages them before the call returns) and blocking copies.

## Evidence
torch's own tutorial on pinned memory shows the corruption; a training tool reports it as garbage in a few batches of thousands.
NVIDIA H200, torch 2.11:
- `pinned.to(d, non_blocking=True)`: free
- `pbig.to(d, non_blocking=True)`: free

## How to confirm
Put `torch.cuda._sleep(10**8)` in front of the copy and compare what arrives with what the buffer held.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.rule import Example, Problem, Rule
from hostlint.wording import happens, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    return Problem(
        f"`{whole(node)}` fills a pinned buffer that the copy of the round before may still read {happens(fact)}: {fact.evidence}; "
        "use a ring of pinned buffers and wait for the slot's event before it is filled again"
    )


RULE = Rule(
    code="HL502",
    name="pinned-source-rewritten",
    summary="a pinned buffer is filled again while its copy may still run",
    kinds=(FactKind.PINNED_REWRITE,),
    check=check,
    examples=(
        Example(
            bad="""\
import torch


def feed(model, arrays, width: int):
    stage = torch.empty(width, pin_memory=True)
    for a in arrays:
        stage.copy_(torch.from_numpy(a))  # expect
        model(stage.to("cuda", non_blocking=True))
""",
            good="""\
import torch


def feed(model, arrays, width: int):
    slots = [(torch.empty(width, pin_memory=True), torch.cuda.Event()) for _ in range(2)]
    for i, a in enumerate(arrays):
        stage, copied = slots[i % 2]
        copied.synchronize()
        stage.copy_(torch.from_numpy(a))
        x = stage.to("cuda", non_blocking=True)
        copied.record()
        model(x)
""",
        ),
        Example(
            bad="""\
import torch


def positions(model, x, steps: int):
    x = x.cuda()
    index = torch.zeros(1, dtype=torch.long).pin_memory()
    there = torch.zeros(1, dtype=torch.long, device="cuda")
    for i in range(steps):
        index[:] = i  # expect
        there.copy_(index, non_blocking=True)
        x = model(x, there)
    return x
""",
            good="""\
import torch


def positions(model, x, steps: int):
    x = x.cuda()
    index = torch.arange(steps).pin_memory()
    there = torch.zeros(1, dtype=torch.long, device="cuda")
    for i in range(steps):
        there.copy_(index[i : i + 1], non_blocking=True)
        x = model(x, there)
    return x
""",
        ),
        Example(
            bad="""\
import torch


def stream(model, rows, width: int):
    stage = torch.empty(width, pin_memory=True)
    view = stage.numpy()
    for row in rows:
        view[:] = row  # expect
        model(stage.cuda(non_blocking=True))
""",
            good="""\
import torch


def stream(model, rows, width: int):
    stage = torch.empty(width, pin_memory=True)
    view = stage.numpy()
    copied = torch.cuda.Event()
    for row in rows:
        copied.synchronize()
        view[:] = row
        x = stage.cuda(non_blocking=True)
        copied.record()
        model(x)
""",
        ),
    ),
)
