"""A device tensor copied to the host on a step's path: `.cpu()`, `.to("cpu")`, `.numpy(force=True)`.

## Why it costs
The copy waits for every kernel queued before it, moves the whole tensor, and leaves the device idle until Python queues again. Copies
of statistics are often made for a reader that does not exist.

## Instead
- Return the device tensor; let the one who shows it convert it, every N steps.
- Collect `t.detach()` in a list and copy `torch.stack(kept)` once after the loop.
- Lengths for `pack_padded_sequence`: keep the collate function's CPU tensor and upload a second copy if the device needs one.
- What the host must see each step: copy into a pinned slot that is kept, record an event, read the slot of the step before after its
  event. Never read the result of a `non_blocking` copy before such a wait.

`hostlint fix --review` returns a part of a tuple where it lives (`return idx, counts.cpu()`), where every call of the function that is seen
drops that part.

## Not flagged
The copy of a request's result, or of a whole tensor once a request outside of loops; checkpoints; evaluation; modules moved to the host
on purpose; host tensors; a copy whose only use is an opaque call on the host (a simulator, an encoder, a file) whose result is the next
input.

## Evidence
NVIDIA H200, torch 2.11:
- `x.cpu()`: 1 wait
- `x.to('cpu')`: 1 wait
- `x.cpu().numpy()`: 1 wait
- `x.numpy(force=True)`: 1 wait
- `np.asarray(x.cpu())`: 1 wait
- `pinnedx.copy_(x, non_blocking=True)`: free
- `s.cpu`: free

## How to confirm
`torch.cuda.set_sync_debug_mode("warn")` reports the copy; it is silent on a `non_blocking` copy into pageable memory, which waits too.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.fix.unused_copies import unused_copy
from hostlint.rule import Example, Problem, Rule
from hostlint.wording import receiver, waits, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    return Problem(f"{waits(fact, whole(node))}; {_instead(node, receiver(node, fact.subject))}")


def _instead(node: cst.BaseExpression, subject: str) -> str:
    import libcst as cst

    late = "read it after the loop, every N steps, or one step late through a pinned slot and its event"
    match node:
        case cst.Call(func=cst.Attribute(value=cst.Name("np" | "numpy"))):
            return f"compute with torch on the device; else {late}"
    if subject.rpartition(".")[2] in {"lengths", "lens", "seq_lens", "input_lengths"}:
        return f"keep the host copy of `{subject}` from the collate function"
    return f"keep `{subject}` on the device and {late}"


RULE = Rule(
    code="HL104",
    name="device-host-copy",
    summary="`.cpu()`, `.to('cpu')` or `.numpy()` copies a device tensor on a step's path",
    kinds=(FactKind.HOST_COPY,),
    check=check,
    fix=unused_copy,
    examples=(
        Example(
            bad="""\
import torch
from torch import nn


class Router(nn.Module):
    def __init__(self, width: int, experts: int):
        super().__init__()
        self.gate = nn.Parameter(torch.zeros(width, experts))
        self.load = None

    def forward(self, x):
        weights = (x @ self.gate).softmax(-1)
        self.load = weights.sum(0).detach().cpu()  # expect
        return weights
""",
            good="""\
import torch
from torch import nn


class Router(nn.Module):
    def __init__(self, width: int, experts: int):
        super().__init__()
        self.gate = nn.Parameter(torch.zeros(width, experts))
        self.load = None

    def forward(self, x):
        weights = (x @ self.gate).softmax(-1)
        self.load = weights.sum(0).detach()
        return weights
""",
        ),
        Example(
            bad="""\
import torch


def track(filters, frames):
    state = torch.zeros(6, device="cuda")
    path = []
    for frame in frames:
        state = state * 0.9 + filters(state, frame.cuda(non_blocking=True))
        path.append(state.to("cpu"))  # expect
    return torch.stack(path)
""",
            good="""\
import torch


def track(filters, frames):
    state = torch.zeros(6, device="cuda")
    path = []
    for frame in frames:
        state = state * 0.9 + filters(state, frame.cuda(non_blocking=True))
        path.append(state.detach())
    return torch.stack(path).to("cpu")
""",
        ),
        Example(
            bad="""\
import numpy as np
import torch

net = torch.nn.Linear(8, 8).cuda()
opt = torch.optim.Adam(net.parameters())


def fit(batches):
    errors = []
    for batch in batches:
        loss = net(batch.cuda(non_blocking=True)).abs().mean()
        loss.backward()
        opt.step()
        opt.zero_grad()
        errors.append(loss.detach().numpy(force=True))  # expect
    return np.mean(errors)
""",
            good="""\
import numpy as np
import torch

net = torch.nn.Linear(8, 8).cuda()
opt = torch.optim.Adam(net.parameters())


def fit(batches):
    errors = []
    for batch in batches:
        loss = net(batch.cuda(non_blocking=True)).abs().mean()
        loss.backward()
        opt.step()
        opt.zero_grad()
        errors.append(loss.detach())
    sizes = np.asarray([batch.shape[0] for batch in batches])
    return np.average(torch.stack(errors).cpu().numpy(), weights=sizes)
""",
        ),
        Example(
            bad="""\
import torch

net = torch.nn.Linear(8, 8).cuda()


def pack(batches):
    kept = []
    for batch, lengths in batches:
        out = net(batch.cuda(non_blocking=True))
        lengths = lengths.cuda(non_blocking=True)
        mask = torch.arange(out.shape[1], device="cuda") < lengths[:, None]
        kept.append((out * mask[..., None], lengths.cpu()))  # expect
    return kept
""",
            good="""\
import torch

net = torch.nn.Linear(8, 8).cuda()


def pack(batches):
    kept = []
    for batch, lengths in batches:
        out = net(batch.cuda(non_blocking=True))
        on_device = lengths.cuda(non_blocking=True)
        mask = torch.arange(out.shape[1], device="cuda") < on_device[:, None]
        kept.append((out * mask[..., None], lengths))
    return kept
""",
        ),
    ),
)
