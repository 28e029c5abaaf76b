"""A host tensor moved to the device with a blocking copy on a step's path.

## Why it costs
Without `non_blocking=True` the host waits until the copy is done, behind all queued kernels. Pinned memory does not change that: a
pinned tensor moved without the flag waits as well.

## Instead
- Loop-invariant data: move it once before the loop.
- A schedule: upload the whole of it once and index the device copy with the host's step counter.
- Batches: pinned memory from the loader (`pin_memory=True`) and `non_blocking=True`. Do not rewrite the pinned source before the copy is
  done: a ring of buffers, each with an event.
- Data that only the host looks at: leave it on the host.
- `non_blocking=True` with a change of dtype converts on the device instead of the host: check the bits, or convert first.

`hostlint fix` moves loop-invariant data once, for review: before the loop where the function does not ask if there is any, else in the
pass that asks first (`extra = extra.to(d)`; the other passes find it there, for which nothing but its shape may be read of it besides).
A table that an object holds (`self.times[i].to(d)`) is moved as a whole by a small function that the fix adds to the module,
`on_device(self.times, d)[i]`: once for each tensor and state of it (torch counts writes in place), device and dtype; casts go element by
element, so that the row has the same bits. The copy stays in the device's memory, and nothing may write into it; a graph capture makes its
own. Parameters that train are moved each time. Pinned memory that the function does not write to gets `non_blocking=True`.

## Not flagged
`non_blocking=True` from pinned memory or for small pageable tensors; a tensor that is on the device already; modules; uploads before the
loop, behind a memo, once per request; values whose place is unknown (a loader's batch), unless a helper of the project that can copy
without waiting is told nothing of it (`send_to_device(batch, device)` where the helper has `non_blocking=False`).

## Evidence
NVIDIA H200, torch 2.11:
- `hs.to(d)`: 1 wait
- `h.cuda()`: 1 wait
- `hbig.to(d)`: 1 wait
- `pbig.to(d)`: 1 wait
- `x.copy_(h)`: 1 wait
- `h.to(d, non_blocking=True)`: free
- `pbig.to(d, non_blocking=True)`: free
- `x.to(d)`: free
- `lin.to(d)`: free

## How to confirm
`torch.cuda.set_sync_debug_mode("warn")` reports the copy.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.calls import BY_HELPER
from hostlint.facts.kinds import FactKind
from hostlint.fix.uploads_once import uploaded_once
from hostlint.model import Applicability
from hostlint.rule import Example, Problem, Rule
from hostlint.wording import receiver, text, when, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    import libcst as cst

    uploads = f"`{whole(node)}` uploads {when(fact)}, and the host waits for the copy"
    if fact.detail == BY_HELPER:
        return Problem(f"{uploads}; pass `non_blocking=True`, and let the loader pin its memory (`pin_memory=True`)")
    if isinstance(node, cst.Subscript):
        written = f"the host tensor written to `{whole(node)}` is uploaded {when(fact)}, and the host waits for the copy"
        return Problem(f"{written}; {_instead(fact)}")
    return Problem(f"{uploads}; move `{_moved(node, fact.subject)}` once before the loop where it does not change, else {_instead(fact)}")


def _moved(node: cst.BaseExpression, subject: str) -> str:
    import libcst as cst

    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name("copy_")), args=[cst.Arg(value=source), *_]):
            return text(source)
    return receiver(node, subject)


def _instead(fact: Fact) -> str:
    if "pinned" in fact.detail and "pageable" not in fact.detail:
        return "add `non_blocking=True` (and do not rewrite the pinned memory before the copy is done)"
    return "upload all steps' values at once, or copy from a kept pinned buffer with `non_blocking=True`"


RULE = Rule(
    code="HL203",
    name="blocking-upload",
    summary="a host tensor is copied to the device with a blocking copy on a step's path",
    kinds=(FactKind.BLOCKING_UPLOAD,),
    check=check,
    fix=uploaded_once,
    examples=(
        Example(
            bad="""\
import torch


class Ramp:
    def __init__(self, width: int):
        self.ramp = torch.linspace(0, 1, width)


def sample(net, x, width: int, steps: int):
    x = x.cuda()
    ramp = Ramp(width).ramp
    for step in range(steps):
        x = net(x * ramp.to("cuda"), step)  # expect
    return x
""",
            good="""\
import torch


class Ramp:
    def __init__(self, width: int):
        self.ramp = torch.linspace(0, 1, width)


def sample(net, x, width: int, steps: int):
    x = x.cuda()
    ramp = Ramp(width).ramp
    ramp_cuda = ramp.to("cuda")
    for step in range(steps):
        x = net(x * ramp_cuda, step)
    return x
""",
            fix=Applicability.REVIEW,
        ),
        Example(
            bad="""\
import torch


class Ramp:
    def __init__(self, width: int):
        self.ramp = torch.linspace(0, 1, width)


def sample(net, x, width: int, steps: int, weighted: bool):
    x = x.cuda()
    ramp = Ramp(width).ramp if weighted else None
    for step in range(steps):
        x = net(x, step)
        if ramp is not None:
            x = net(x, ramp.to(x.device))  # expect
    return x
""",
            good="""\
import torch


class Ramp:
    def __init__(self, width: int):
        self.ramp = torch.linspace(0, 1, width)


def sample(net, x, width: int, steps: int, weighted: bool):
    x = x.cuda()
    ramp = Ramp(width).ramp if weighted else None
    for step in range(steps):
        x = net(x, step)
        if ramp is not None:
            ramp = ramp.to(x.device)
            x = net(x, ramp)
    return x
""",
            fix=Applicability.REVIEW,
        ),
        Example(
            bad="""\
import torch


class Schedule:
    def __init__(self, steps: int):
        self.times = torch.linspace(1.0, 0.0, steps)


def sample(unet, x, steps: int):
    x = x.to("cuda")
    schedule = Schedule(steps)
    for i in range(steps):
        if float(schedule.times[i]) > 0.5:
            x = x * 0.99
        x = unet(x, schedule.times[i].to("cuda"))  # expect
    return x
""",
            good='''\
import functools

import torch


@functools.lru_cache(maxsize=16)
def moved_table(table, version, device, dtype):
    with torch.inference_mode(table.is_inference()):
        return table.to(device, dtype)


def on_device(table, device, dtype=None):
    """`table.to(device, dtype)`, moved once for each tensor and each state of it: nothing may write into it. A capture makes its own."""
    captures = torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()
    changes = captures or torch.compiler.is_compiling() or table.requires_grad or table.is_inference()
    move = moved_table.__wrapped__ if changes else moved_table
    return move(table, 0 if changes else table._version, torch.device(device), table.dtype if dtype is None else dtype)


class Schedule:
    def __init__(self, steps: int):
        self.times = torch.linspace(1.0, 0.0, steps)


def sample(unet, x, steps: int):
    x = x.to("cuda")
    schedule = Schedule(steps)
    for i in range(steps):
        if float(schedule.times[i]) > 0.5:
            x = x * 0.99
        x = unet(x, on_device(schedule.times, "cuda")[i])
    return x
''',
            fix=Applicability.REVIEW,
        ),
        Example(
            bad="""\
import torch


def engine(model, batches):
    slots = torch.zeros(256, dtype=torch.int64, device="cuda")
    staging = torch.zeros(256, dtype=torch.int64)
    for batch in batches:
        staging[: len(batch.slots)] = torch.tensor(batch.slots)
        slots.copy_(staging)  # expect
        model(slots)
""",
            good="""\
import torch


def engine(model, batches):
    slots = torch.zeros(256, dtype=torch.int64, device="cuda")
    ring = [(torch.zeros(256, dtype=torch.int64, pin_memory=True), torch.cuda.Event()) for _ in range(3)]
    for i, batch in enumerate(batches):
        staging, copied = ring[i % 3]
        if i >= 3:
            copied.synchronize()
        staging[: len(batch.slots)] = torch.tensor(batch.slots)
        slots.copy_(staging, non_blocking=True)
        copied.record()
        model(slots)
""",
        ),
        Example(
            bad="""\
import torch


def to_device(batch, device, non_blocking=False):
    return {name: tensor.to(device, non_blocking=non_blocking) for name, tensor in batch.items()}


def train(model, optimizer, loader, device):
    for batch in loader:
        batch = to_device(batch, device)  # expect
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
""",
            good="""\
import torch


def to_device(batch, device, non_blocking=False):
    return {name: tensor.to(device, non_blocking=non_blocking) for name, tensor in batch.items()}


def train(model, optimizer, loader, device):
    for batch in loader:
        batch = to_device(batch, device, non_blocking=True)
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
""",
        ),
    ),
)
