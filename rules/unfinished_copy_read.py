"""The result of a non-blocking copy to the host is read before the copy has ended.

## Why it costs
It costs right results, not time. `x.to("cpu", non_blocking=True)` returns at once, with host memory that the device fills later. Whoever
reads it before then gets old bytes, and nothing reports it: the program works on one machine and shows black images on another. The
device's stream order does not help, for the host is no part of it.

## Instead
- Where the value is needed now: `x.cpu()`. It waits, and it is right.
- Where it is needed a little later: copy into a pinned slot, record an event, and before the read wait for that event. Read one step late
  (two slots, two events), and the wait is for work that is long done.
- Where several values are needed: start all copies, then one `torch.cuda.current_stream().synchronize()`, then read.

## Not flagged
Reads after `synchronize()`, `wait()` or `query()` of anything, after another read that waits for the same device, or after a function that
does so; `arr = copy.numpy()` with a wait before it is used; shapes and dtypes; a slot that is read before it is filled again (one step
late); an attribute that another method reads, where that method is not seen to call the one that starts the copy.

## Evidence
Several image and model servers took non-blocking copies to the host back after black images and previews made of unfinished copies.
NVIDIA H200, torch 2.11:
- `pinnedx.copy_(x, non_blocking=True)`: free
- `torch.cuda.current_stream().query()`: free

## How to confirm
Put a long kernel in front of the copy (`torch.cuda._sleep`), fill the destination with a mark, and compare what is read with `x.cpu()`.
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
    if fact.detail:  # kept in an attribute, and read by another method
        return Problem(
            f"`{whole(node)}` fills `{fact.detail}` after it has returned, {happens(fact)}: {fact.evidence}, and nothing waits in between; "
            "use a blocking `.cpu()`, or record an event after the copy and wait for it before the read"
        )
    return Problem(
        f"`{whole(node)}` reads host memory that may not be filled yet {happens(fact)}: {fact.evidence}, and nothing waits in between; "
        "use a blocking `.cpu()`, or record an event after the copy and wait for it before the read (one step late)"
    )


RULE = Rule(
    code="HL501",
    name="unfinished-copy-read",
    summary="a non-blocking copy to the host is read before it has ended",
    kinds=(FactKind.UNFINISHED_COPY,),
    check=check,
    examples=(
        Example(
            bad="""\
import torch


class Dispatcher:
    def prepare(self, mask):
        self.splits = mask.cuda().sum(0).to("cpu", non_blocking=True)  # expect

    def dispatch(self, x, mask):
        self.prepare(mask)
        return torch.split(x, self.splits.tolist())
""",
            good="""\
import torch


class Dispatcher:
    def __init__(self):
        self.copied = torch.cuda.Event()

    def prepare(self, mask):
        self.splits = mask.cuda().sum(0).to("cpu", non_blocking=True)
        self.copied.record()

    def dispatch(self, x, mask):
        self.prepare(mask)
        self.copied.synchronize()
        return torch.split(x, self.splits.tolist())
""",
        ),
        Example(
            bad="""\
import torch


def preview(model, x, steps: int, show):
    x = x.cuda()
    for i in range(steps):
        x = model(x, i)
        frame = x.to("cpu", non_blocking=True)
        show(i, frame.numpy())  # expect
    return x
""",
            good="""\
import torch


def preview(model, x, steps: int, show):
    x = x.cuda()
    frame, copied = None, torch.cuda.Event()
    for i in range(steps):
        x = model(x, i)
        if frame is not None:
            copied.synchronize()
            show(i - 1, frame.numpy())
        frame = x.to("cpu", non_blocking=True)
        copied.record()
    return x
""",
        ),
        Example(
            bad="""\
import torch


def is_sound(model, x):
    y = model(x.cuda(non_blocking=True))
    flag = torch.isfinite(y).all().to("cpu", non_blocking=True)
    if not flag:  # expect
        raise FloatingPointError
    return y
""",
            good="""\
import torch


def is_sound(model, x):
    y = model(x.cuda(non_blocking=True))
    flag = torch.isfinite(y).all().to("cpu", non_blocking=True)
    torch.cuda.current_stream().synchronize()
    if not flag:
        raise FloatingPointError
    return y
""",
        ),
        Example(
            bad="""\
import torch


class Lengths:
    def __init__(self):
        self.slot = torch.zeros((), dtype=torch.long, pin_memory=True)
        self.copied = torch.cuda.Event()

    def read(self, length):
        length = length.cuda()
        self.slot.copy_(length, non_blocking=True)
        self.copied.record()
        return int(self.slot)  # expect
""",
            good="""\
import torch


class Lengths:
    def __init__(self):
        self.slot = torch.zeros((), dtype=torch.long, pin_memory=True)
        self.copied = torch.cuda.Event()

    def read(self, length):
        length = length.cuda()
        self.copied.synchronize()
        before = int(self.slot)
        self.slot.copy_(length, non_blocking=True)
        self.copied.record()
        return before
""",
        ),
    ),
)
