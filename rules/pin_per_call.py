"""Pinned memory allocated on a step's path: `t.pin_memory()`, `pin_memory=True`.

## Why it costs
Pinning asks the driver for locked pages. The median call is cheap, but under load it waits for the driver's lock (milliseconds were
reported), and a fresh pinned block costs more than the copy it speeds up.

## Instead
- Allocate the pinned buffer once and reuse it. A buffer in flight must not be rewritten: a ring of two or three, each with an event that is
  waited for before the slot is written again.
- Keep what is copied dense: a strided view of pinned memory goes through an unpinned temporary.
- Batches: `DataLoader(pin_memory=True)` pins in its own thread.
- Small tensors: leave them pageable; a small pageable `non_blocking` copy does not wait.

## Not flagged
Pinned buffers made in `__init__`, before the loop or behind a memo; `DataLoader(pin_memory=True)`; `is_pinned()`.

## Evidence
NVIDIA H200, torch 2.11, one thread, warm cache, where the call itself does not wait for the device:
- `h.pin_memory()`: free
- `h.pin_memory().to(d, non_blocking=True)`: free
- `h.to(d, non_blocking=True)`: free

The stalls are reported by users: about 12 ms at worst under concurrency, about 9 ms for a fresh allocation.

## How to confirm
A host profile shows `cudaHostAlloc` on the step's path; torch's sync debug mode does not.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.rule import Example, Problem, Rule
from hostlint.wording import when, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    return Problem(
        f"`{whole(node)}` allocates pinned memory {when(fact)}, which can stall in the driver;"
        " keep a ring of pinned buffers, each with an event to wait for before it is rewritten"
    )


RULE = Rule(
    code="HL207",
    name="pin-per-call",
    summary="pinned memory is allocated on a step's path",
    kinds=(FactKind.PIN_PER_CALL,),
    check=check,
    examples=(
        Example(
            bad="""\
import torch

net = torch.nn.Linear(64, 64).cuda()


def serve(batches):
    for batch in batches:
        rows = torch.tensor(batch.rows, dtype=torch.float32)
        net(rows.pin_memory().to("cuda", non_blocking=True))  # expect
""",
            good="""\
import torch

net = torch.nn.Linear(64, 64).cuda()


def serve(batches):
    ring = [(torch.zeros(8, 64, pin_memory=True), torch.cuda.Event()) for _ in range(2)]
    for i, batch in enumerate(batches):
        slot, copied = ring[i % 2]
        if i >= 2:
            copied.synchronize()
        slot.copy_(torch.tensor(batch.rows, dtype=torch.float32))
        rows = slot.to("cuda", non_blocking=True)
        copied.record()
        net(rows)
""",
        ),
        Example(
            bad="""\
import torch


def metadata(count: int):
    return torch.zeros(count, dtype=torch.int32, pin_memory=True)  # expect


def engine(model, batches):
    state = torch.zeros(8, device="cuda")
    for batch in batches:
        table = metadata(len(batch.rows))
        state = model(state, table.to("cuda", non_blocking=True))
    return state
""",
            good="""\
import torch


class Metadata:
    def __init__(self, limit: int):
        self.table = torch.zeros(limit, dtype=torch.int32, pin_memory=True)
        self.copied = torch.cuda.Event()


def engine(model, batches):
    state = torch.zeros(8, device="cuda")
    ring = [Metadata(4096), Metadata(4096)]
    for i, batch in enumerate(batches):
        slot = ring[i % 2]
        if i >= 2:
            slot.copied.synchronize()
        table = slot.table[: len(batch.rows)].to("cuda", non_blocking=True)
        slot.copied.record()
        state = model(state, table)
    return state
""",
        ),
        Example(
            bad="""\
import torch
from torch import nn


class Offloaded(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(width, width))
        self.host = torch.zeros(width)

    def forward(self, x):
        bias = torch.empty_like(self.host, pin_memory=True)  # expect
        bias.copy_(self.host)
        return x @ self.weight + bias.to("cuda", non_blocking=True)
""",
            good="""\
import torch
from torch import nn


class Offloaded(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(width, width))
        self.host = torch.zeros(width, pin_memory=True)

    def forward(self, x):
        ready = self.host.is_pinned()
        return x @ self.weight + self.host.to("cuda", non_blocking=ready)
""",
        ),
    ),
)
