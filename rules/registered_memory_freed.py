"""Host memory that was registered by hand is unregistered or freed while a non-blocking copy may still read it.

## Why it costs
It costs right data, or the process. A copy from pinned memory with `non_blocking=True` only starts when the device gets to it, and reads
the pages then. `cudaHostUnregister` and `cudaFreeHost` do not know of it: the device may read pages that the system has given to somebody
else, or the copy fails with an error that shows up in another call.

## Instead
- Record an event after the last copy, wait for it (`event.synchronize()`), then unregister or free.
- Or let torch own the memory (`torch.empty(..., pin_memory=True)`): its allocator keeps a block until every copy that torch made from it
  has ended, so that `del` and leaving the scope are safe at any time.

## Not flagged
`del` of pinned tensors that torch made, for the reason above; frees after `synchronize()`, `wait()` or a read that waits; blocking copies.

## Evidence
By the order of the function's text. torch's allocator for pinned memory records an event for each copy and reuses a block only when its
events have passed; memory that others allocate or register has no such record. NVIDIA H200, torch 2.11:
- `pinned.to(d, non_blocking=True)`: free

## How to confirm
Put `torch.cuda._sleep(10**8)` in front of the copy and compare what arrives with what the memory held.
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
        f"`{whole(node)}` takes away memory that a copy may still read, {happens(fact)}: {fact.evidence}; record an event after the "
        "copy and wait for it first"
    )


RULE = Rule(
    code="HL506",
    name="registered-memory-freed",
    summary="registered host memory is freed while its non-blocking copy may still run",
    kinds=(FactKind.PINNED_FREED,),
    check=check,
    examples=(
        Example(
            bad="""\
import torch


def upload(weights: torch.Tensor):
    runtime = torch.cuda.cudart()
    runtime.cudaHostRegister(weights.data_ptr(), weights.nbytes, 0)
    on_device = weights.to("cuda", non_blocking=True)
    runtime.cudaHostUnregister(weights.data_ptr())  # expect
    return on_device
""",
            good="""\
import torch


def upload(weights: torch.Tensor):
    runtime = torch.cuda.cudart()
    runtime.cudaHostRegister(weights.data_ptr(), weights.nbytes, 0)
    on_device = weights.to("cuda", non_blocking=True)
    copied = torch.cuda.Event()
    copied.record()
    copied.synchronize()
    runtime.cudaHostUnregister(weights.data_ptr())
    return on_device
""",
        ),
        Example(
            bad="""\
import torch


def swap(stage: torch.Tensor, cache: torch.Tensor, cudart):
    cache.copy_(stage, non_blocking=True)
    cudart.cudaFreeHost(stage.data_ptr())  # expect
""",
            good="""\
import torch


def swap(stage: torch.Tensor, cache: torch.Tensor):
    stage = stage.pin_memory()
    cache.copy_(stage, non_blocking=True)
    del stage
""",
        ),
        Example(
            bad="""\
import torch


def gather(pages: list[torch.Tensor], cudart):
    parts = []
    for page in pages:
        parts.append(page.cuda(non_blocking=True))
        cudart.cudaHostUnregister(page.data_ptr())  # expect
    return parts
""",
            good="""\
import torch


def gather(pages: list[torch.Tensor], cudart):
    parts = []
    for page in pages:
        parts.append(page.cuda(non_blocking=True))
    torch.cuda.current_stream().synchronize()
    for page in pages:
        cudart.cudaHostUnregister(page.data_ptr())
    return parts
""",
        ),
    ),
)
