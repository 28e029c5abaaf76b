"""The cyclic collector is switched off, and nothing in the project collects or switches it on again.

## Why it costs
It takes the pauses away and leaves a leak: whatever sits in a cycle (a module with hooks, an exception with its traceback, a closure that
holds `self`) is never freed, its tensors neither. Memory of the host and the device grows until a worker dies, hours later.

## Instead
- A fixed pace: `gc.disable()` at the start, `gc.collect(1)` every N steps on all ranks together, `gc.collect()` at checkpoints,
  `gc.enable()` at the end.
- A server: `gc.collect(); gc.freeze()` once after the warm-up, the collector on, or a collection when no request runs.
- For one critical stretch: disable, `try`, and `finally: gc.enable()`.

## Not flagged
Projects in which anything calls `gc.collect` or `gc.enable`; `gc.freeze()` alone; thresholds above zero; tests and benchmarks.

## Evidence
Training runs whose workers died of growing memory after the collector was switched off for speed; one grew 3.4 GB an iteration.
NVIDIA H200, torch 2.11, what the pace costs each time:
- `gc.collect()`: host work

## How to confirm
`gc.get_count()` grows without end, and `gc.collect()` at a prompt returns a large number.
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
        f"`{whole(node)}` switches the collector off {happens(fact)}, and {fact.evidence}, so that cycles keep their tensors for ever: "
        "collect every N steps (on all ranks together), and enable it at the end"
    )


RULE = Rule(
    code="HL404",
    name="collector-off",
    summary="the cyclic collector is off for ever",
    kinds=(FactKind.COLLECTOR_OFF,),
    check=check,
    examples=(
        Example(
            bad="""\
import gc

import torch


def fit(model, loader, optimizer):
    gc.disable()  # expect
    for x in loader:
        model(x.cuda(non_blocking=True)).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
""",
            good="""\
import gc

import torch


def fit(model, loader, optimizer):
    gc.disable()
    for step, x in enumerate(loader):
        model(x.cuda(non_blocking=True)).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 100 == 0:
            gc.collect(1)
""",
        ),
        Example(
            bad="""\
from gc import disable

import torch


class Worker:
    def __init__(self, model):
        self.model = model.cuda()
        disable()  # expect

    def serve(self, inbox):
        for request in inbox:
            request.reply(self.model(request.ids.cuda(non_blocking=True)))
""",
            good="""\
import gc

import torch


class Worker:
    def __init__(self, model):
        self.model = model.cuda()
        gc.freeze()

    def serve(self, inbox):
        for request in inbox:
            request.reply(self.model(request.ids.cuda(non_blocking=True)))
""",
        ),
        Example(
            bad="""\
import gc

import torch


def start(model, requests):
    gc.set_threshold(0)  # expect
    for request in requests:
        request.reply(model(request.ids.cuda(non_blocking=True)))
""",
            good="""\
import gc

import torch


def start(model, requests):
    gc.set_threshold(50_000, 20, 20)
    for request in requests:
        gc.disable()
        try:
            request.reply(model(request.ids.cuda(non_blocking=True)))
        finally:
            gc.enable()
""",
        ),
    ),
)
