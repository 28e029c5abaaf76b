"""`.item()` of a device tensor on a step's path.

## Why it costs
`.item()` copies one number to the host. The host waits until every kernel queued before it has run, so its lead over the device is gone
and the device idles until Python has queued work again. At most the smaller of the host's and the device's time per step can be won.

## Instead
- A running sum: add `loss.detach().double()` on the device and call `.item()` once after the loop. Float64 gives the bits of a Python
  float sum, float32 and bf16 do not; without `detach` the graph of every step stays alive.
- A log line: read it behind `step % N == 0`, in the same window as the other values.
- A schedule: `.tolist()` once before the loop, then index the list with the host's step counter.
- A stop test: every N tokens, or read the flag of the step before from a pinned slot after its event, and drop the overshoot.

## Not flagged
NumPy scalars and host tensors; reads after the loop, every N steps, behind a debug switch, in evaluation; the lagged read of a pinned
slot; values whose place is unknown.

## Evidence
NVIDIA H200, torch 2.11:
- `s.item()`: 1 wait
- `s.detach().item()`: 1 wait
- `sum([x[0], x[1]])`: free

## How to confirm
`torch.cuda.set_sync_debug_mode("warn")` before the loop warns at this line on every step.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.rule import Example, Problem, Rule
from hostlint.syntax import function, parsed, walk
from hostlint.wording import receiver, text, waits, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    return Problem(f"{waits(fact, whole(node))}; {_instead(fact, node, receiver(node, fact.subject))}")


def _instead(fact: Fact, node: cst.BaseExpression, subject: str) -> str:
    import libcst as cst

    how = "detached, sums in float64" if _is_summed(fact) else "detached"
    later = f"keep `{subject}` on the device ({how}) and read it after the loop, every N steps or one step late"
    match node:
        case cst.Call(func=cst.Attribute(value=value)) if any(function(part) in {"nonzero", "argwhere"} for part in walk(value)):
            return "the step of a schedule: count on the host; else `mask.int().argmax()` keeps the first hit a tensor (0 if there is none)"
        case cst.Call(func=cst.Attribute(value=cst.Subscript(value=cst.Name() | cst.Attribute() as table))) if _indexes(text(table)):
            return "the step of a schedule: count on the host (set the counter with it); else use the tensor itself (`index_select`)"
        case cst.Call(func=cst.Attribute(value=cst.Call(func=cst.Attribute(attr=cst.Name("any" | "all"))))):
            return "combine the flag on the device (`|=`, `&=`) and read it every N steps, or read the flag of the step before"
        case cst.Call(func=cst.Attribute(value=cst.Call(func=cst.Attribute(attr=cst.Name("argmax" | "argmin" | "multinomial"))))):
            return "keep the index a tensor (`gather`, `index_select`), or let the host look one step late"
        case cst.Call(func=cst.Attribute(value=cst.Subscript(value=table))):
            return f"if `{text(table)}` stays the same over the steps, `.tolist()` it once before the loop; else {later}"
    return later


def _is_summed(fact: Fact) -> bool:
    """Whether the number goes into a running sum; where the statement is not known, it may."""
    import libcst as cst

    statement = parsed(fact.source)
    return statement is None or any(isinstance(part, cst.AugAssign) for part in walk(statement))


def _indexes(name: str) -> bool:
    return any(word in {"index", "indices", "idx", "idxs", "inds", "positions"} for word in name.rpartition(".")[2].lower().split("_"))


RULE = Rule(
    code="HL101",
    name="device-item",
    summary="`.item()` reads a device tensor on a step's path",
    kinds=(FactKind.ITEM,),
    check=check,
    examples=(
        Example(
            bad="""\
import torch
from torch import nn

net = nn.Linear(16, 1).cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1)


def epoch(batches):
    total = 0.0
    for x, y in batches:
        loss = (net(x.cuda(non_blocking=True)) - y.cuda(non_blocking=True)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * x.shape[0]  # expect
    return total
""",
            good="""\
import torch
from torch import nn

net = nn.Linear(16, 1).cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1)


def epoch(batches):
    total = torch.zeros((), dtype=torch.float64, device="cuda")
    for step, (x, y) in enumerate(batches):
        loss = (net(x.cuda(non_blocking=True)) - y.cuda(non_blocking=True)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.detach().double() * x.shape[0]
        if step % 100 == 0:
            print(step, loss.item())
    return total.item()
""",
        ),
        Example(
            bad="""\
import torch


def decode(model, tokens, eos, limit):
    tokens = tokens.to("cuda")
    for _ in range(limit):
        logits = model(tokens)
        last = logits[:, -1].argmax(-1, keepdim=True)
        tokens = torch.cat([tokens, last], dim=1)
        if (last == eos).all().item():  # expect
            break
    return tokens
""",
            good="""\
import torch


def decode(model, tokens, eos, limit):
    tokens = tokens.to("cuda")
    done = torch.zeros(tokens.shape[0], 1, dtype=torch.bool, device="cuda")
    for position in range(limit):
        logits = model(tokens)
        last = torch.where(done, eos, logits[:, -1].argmax(-1, keepdim=True))
        tokens = torch.cat([tokens, last], dim=1)
        done |= last == eos
        if position % 16 == 15 and done.all().item():
            break
    return tokens
""",
        ),
        Example(
            bad="""\
import torch


def integrate(field, x, steps):
    sigmas = torch.linspace(1.0, 0.0, steps + 1, device="cuda")
    for i in range(steps):
        here, there = sigmas[i].item(), sigmas[i + 1].item()  # expect
        x = x + (there - here) * field(x, here)
    return x
""",
            good="""\
import torch


def integrate(field, x, steps):
    sigmas = torch.linspace(1.0, 0.0, steps + 1, device="cuda").tolist()
    for i in range(steps):
        here, there = sigmas[i], sigmas[i + 1]
        x = x + (there - here) * field(x, here)
    return x
""",
        ),
        Example(
            bad="""\
import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(width))
        self.limit = torch.tensor(0.5).item()

    def forward(self, x):
        strength = self.weight.sigmoid().mean().item()  # expect
        return x * min(strength, self.limit)
""",
            good="""\
import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(width))
        self.limit = torch.tensor(0.5).item()

    def forward(self, x):
        return x * self.weight.sigmoid().mean().clamp(max=self.limit)
""",
        ),
    ),
)
