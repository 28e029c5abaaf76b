"""`empty_cache()` on a step's path.

## Why it costs
The caching allocator keeps freed blocks so that the next step can take them without asking the driver. A flush waits for the device and
hands every free block back; the next step asks for the same memory again, block by block, and each of these calls waits as well. It frees
nothing that torch itself could not use: an allocation that finds no room flushes by itself before it fails.

## Instead
- Take the flush out of the loop. Where memory is tight, drop the references first (`del`, a smaller scope): torch takes the blocks again.
- Against fragmentation: `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`, buffers of fixed size that are kept.
- Flush where memory really leaves torch: after a model was deleted or moved off the device, in the branch that handles `OutOfMemoryError`,
  when a server goes idle, before another library or process takes the device.
- If it must be in the loop, every N steps.

## Not flagged
Flushes in `except` branches, behind a debug switch, behind a setting that asks for them (`args.empty_cache_level`), every N steps, in
functions that offload, unload, put to sleep or tear down, after a model was deleted or moved away, in tests and benchmarks, once per
request (a note at `--min-heat request`); `empty_cache` of a cache of your own.

## Evidence
Three projects took a flush out of their step loops because it slowed every user; others report most of their time spent in forced
releases. The table of torch has no line for it: on an allocator that holds no free block the call returns at once, so its cost depends on
the program. NVIDIA H200, torch 2.11:
- `torch.cuda.mem_get_info()`: free

## How to confirm
torch's debug mode is silent here. A profile shows `cudaFree` and `cudaMalloc` in every step; `torch.cuda.memory_stats()` counts
`num_device_free` and `num_device_alloc`, which stay constant over warm steps once the flush is gone.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.rule import Example, Problem, Rule
from hostlint.torch_ops.pauses import is_release, is_release_file
from hostlint.wording import when, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    if is_release_file(fact.path) or is_release(fact.function) or any(is_release(link.function) for link in fact.heat.chain):
        return None
    return Problem(
        f"`{whole(node)}` waits for the device and gives its cached memory back {when(fact)}, so that the next step allocates it anew; "
        "take it out, and flush where a model leaves the device or memory has run out"
    )


RULE = Rule(
    code="HL401",
    name="cache-flush-per-step",
    summary="the allocator's cache is emptied on a step's path",
    kinds=(FactKind.FLUSH,),
    check=check,
    examples=(
        Example(
            bad="""\
import torch


def fit(model, loader, optimizer):
    for x in loader:
        model(x.cuda(non_blocking=True)).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.empty_cache()  # expect
""",
            good="""\
import torch


def fit(model, loader, optimizer):
    for step, x in enumerate(loader):
        try:
            model(x.cuda(non_blocking=True)).mean().backward()
        except torch.cuda.OutOfMemoryError:
            torch.cuda.empty_cache()
            continue
        optimizer.step()
        optimizer.zero_grad()
        if step % 500 == 0:
            torch.cuda.empty_cache()
    del model
    torch.cuda.empty_cache()
""",
        ),
        Example(
            bad="""\
import torch


def tidy():
    torch.get_device_module().empty_cache()  # expect


def denoise(model, latents, steps: int):
    latents = latents.cuda()
    for i in range(steps):
        latents = model(latents, i)
        tidy()
    return latents
""",
            good="""\
import torch


def tidy():
    torch.get_device_module().empty_cache()


def denoise(model, latents, steps: int):
    latents = latents.cuda()
    for i in range(steps):
        latents = model(latents, i)
    tidy()
    return latents
""",
        ),
        Example(
            bad="""\
import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
            torch.xpu.empty_cache()  # expect
        return x
""",
            good="""\
import torch
from torch import nn


class KeyCache:
    def empty_cache(self):
        self.rows = []


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))
        self.keys = KeyCache()

    def forward(self, x):
        self.keys.empty_cache()
        for block in self.blocks:
            x = block(x)
        return x

    def offload(self):
        self.cpu()
        torch.xpu.empty_cache()
""",
        ),
    ),
)
