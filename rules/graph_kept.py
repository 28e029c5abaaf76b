"""A loss that carries its graph is summed or listed over the steps of a loop.

## Why it costs
`total += loss` makes `total` depend on every step so far: each term keeps the graph of its step alive. Memory grows with every step until
the allocator starts to free and ask again, and in the end the run dies. It is what one gets when a `loss.item()` is taken out without care.

## Instead
- `total += loss.detach()`, with `total` a tensor on the device in float64 (in float32, where the device has no float64), read once after
  the loop.
- `losses.append(loss.detach())`, and one `torch.stack(losses).tolist()` at the logging step.

## Not flagged
A sum on which backward() itself is called, losses that are detached or read, a list that is made or emptied in the same round, code under
`no_grad` (nobody calls backward() there).

## Evidence
Memory that grows because of summed losses is among the oldest questions of the torch forum.
NVIDIA H200, torch 2.11, the read that is better kept than replaced without `detach()`:
- `s.item()`: 1 wait

## How to confirm
`total.grad_fn` is not None; `torch.cuda.memory_allocated()` grows from step to step.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.rule import Example, Problem, Rule
from hostlint.wording import happens, short, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    return Problem(
        f"`{short(fact.call or fact.subject)}` keeps `{whole(node)}` with its graph {happens(fact)} ({fact.evidence}), and memory grows: "
        "keep the loss detached, sum in float64, and read it after the loop"
    )


RULE = Rule(
    code="HL503",
    name="graph-kept",
    summary="losses are kept over the steps together with their graphs",
    kinds=(FactKind.GRAPH_KEPT,),
    check=check,
    examples=(
        Example(
            bad="""\
import torch


def fit(model, loader, criterion, optimizer):
    total = 0.0
    for x, y in loader:
        loss = criterion(model(x.cuda(non_blocking=True)), y.cuda(non_blocking=True))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        total += loss  # expect
    return total.item() / len(loader)
""",
            good="""\
import torch


def fit(model, loader, criterion, optimizer):
    total = torch.zeros((), dtype=torch.float64, device="cuda")
    for x, y in loader:
        loss = criterion(model(x.cuda(non_blocking=True)), y.cuda(non_blocking=True))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        total += loss.detach()
    return total.item() / len(loader)
""",
        ),
        Example(
            bad="""\
import torch


def fit(model, loader, scaler, optimizer):
    losses = []
    for x in loader:
        loss = model(x.cuda(non_blocking=True)).mean()
        scaler.scale(loss).backward()
        optimizer.step()
        losses.append(loss)  # expect
    return torch.stack(losses)
""",
            good="""\
import torch


def fit(model, loader, optimizer):
    for parts in loader:
        losses = []
        for x in parts:
            losses.append(model(x.cuda(non_blocking=True)).mean())
        loss = torch.stack(losses).sum()
        loss.backward()
        optimizer.step()
""",
        ),
        Example(
            bad="""\
import torch


def fit(model, loader, optimizer, accumulate: int):
    stats = {"loss": 0.0}
    for x in loader:
        loss = model(x.cuda(non_blocking=True)).mean()
        (loss / accumulate).backward()
        stats["loss"] += loss / accumulate  # expect
    return stats
""",
            good="""\
import torch


def fit(model, loader, optimizer, heads):
    for x in loader:
        hidden = model(x.cuda(non_blocking=True))
        total = 0.0
        for head in heads:
            total += head(hidden).mean()
        total.backward()
        optimizer.step()
""",
        ),
    ),
)
