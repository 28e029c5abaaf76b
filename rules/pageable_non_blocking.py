"""A large pageable host tensor moved with `non_blocking=True`.

## Why it costs
`non_blocking=True` helps only from pinned memory. A large pageable tensor is staged through the driver's own buffers, and the host waits
for it as if the flag were not there. torch's debug mode does not say so.

## Instead
- Keep the data in pinned memory that is allocated once: a ring of buffers, each with an event that is waited for before it is rewritten.
  A NumPy view of a pinned tensor fills it in place.
- Copy dense memory: a strided view of a pinned tensor goes through an unpinned temporary.
- Do not pin per call, and do not read the source's reuse away: the copy may still run when the call returns.

## Not flagged
Tensors of up to 2 MiB, which the driver stages without a wait (bisected on an H200: 2,097,153 bytes are the first to wait), and tensors
of unknown size; pinned memory; copies between devices.

## Evidence
NVIDIA H200, torch 2.11; `h` holds 16 floats, `hbig` and `pbig` hold 8 million:
- `hbig.to(d, non_blocking=True)`: waits, not reported by the debug mode
- `h.to(d, non_blocking=True)`: free
- `h.cuda(non_blocking=True)`: free
- `pbig.to(d, non_blocking=True)`: free
- `pinned.to(d, non_blocking=True)`: free

## How to confirm
A host profile shows `cudaMemcpyAsync` taking as long as the copy; `torch.cuda.set_sync_debug_mode` is silent.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.rule import Example, Problem, Rule
from hostlint.wording import receiver, when, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    uploads = f"`{whole(node)}` copies a large pageable tensor {when(fact)}; the host waits in spite of `non_blocking=True`"
    kept = receiver(node, fact.subject)
    return Problem(f"{uploads}; keep `{kept}` in pinned memory allocated once (a ring of buffers with an event each)")


RULE = Rule(
    code="HL208",
    name="pageable-non-blocking",
    summary="`non_blocking=True` on a large pageable tensor: the host waits all the same",
    kinds=(FactKind.PAGEABLE_NON_BLOCKING,),
    check=check,
    examples=(
        Example(
            bad="""\
import torch


def engine(model, batches):
    for batch in batches:
        table = torch.zeros(4096, 4096)
        table[: len(batch.rows), 0] = torch.tensor(batch.rows)
        model(table.to("cuda", non_blocking=True))  # expect
        few = torch.zeros(16)
        model(few.to("cuda", non_blocking=True))
""",
            good="""\
import torch


def engine(model, batches):
    ring = [(torch.zeros(4096, 4096, pin_memory=True), torch.cuda.Event()) for _ in range(2)]
    for i, batch in enumerate(batches):
        table, copied = ring[i % 2]
        if i >= 2:
            copied.synchronize()
        table[: len(batch.rows), 0] = torch.tensor(batch.rows)
        model(table.to("cuda", non_blocking=True))
        copied.record()
""",
        ),
        Example(
            bad="""\
import numpy as np
import torch


def volumes(net, scans):
    net.cuda()
    for scan in scans.stream:
        grid = np.zeros((256, 256, 256), dtype=np.float32)
        scan.fill(grid)
        net(torch.from_numpy(grid).cuda(non_blocking=True))  # expect
""",
            good="""\
import torch


def volumes(net, scans):
    net.cuda()
    grid = torch.zeros(256, 256, 256, pin_memory=True)
    copied = torch.cuda.Event()
    for i, scan in enumerate(scans.stream):
        if i:
            copied.synchronize()
        scan.fill(grid.numpy())
        on_device = grid.cuda(non_blocking=True)
        copied.record()
        net(on_device)
""",
        ),
        Example(
            bad="""\
import torch
from torch import nn


class Lookup(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.zeros(1 << 24)
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x):
        rows = self.table.to("cuda", non_blocking=True)  # expect
        return x + rows.sum() * self.scale
""",
            good="""\
import torch
from torch import nn


class Lookup(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.zeros(1 << 24, pin_memory=True)
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x):
        rows = self.table.to("cuda", non_blocking=True)
        return x + rows.sum() * self.scale
""",
        ),
    ),
)
