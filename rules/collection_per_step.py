"""`gc.collect()` on a step's path.

## Why it costs
A full collection walks every container that the process holds: tens to hundreds of milliseconds where a model, a tokenizer and their
modules are loaded. The host launches nothing meanwhile, the device runs dry, and on several ranks the others wait for the one that
collects.

## Instead
- Take it out: tensors are freed by their reference counts at once. What only a collection frees is held in a cycle: break the cycle (a
  `weakref`, an exception's traceback, a closure that holds `self`).
- For even step times: `gc.disable()` before the loop, `gc.collect(1)` every N steps on all ranks together, `gc.enable()` after it.
- In a server: `gc.collect(); gc.freeze()` once after the warm-up, and a collection when no request runs.

## Not flagged
Collections every N steps, of the young generations alone (`gc.collect(0)`, `gc.collect(1)`), in `except` branches, in functions that
offload, unload or tear down, after a model was deleted or moved away, at start, in tests and benchmarks, once per request (a note at
`--min-heat request`).

## Evidence
Servers report stalls of 100 to 300 ms, one of 41 s over 75 million objects; a training run gained 1.5 % by a fixed pace.
NVIDIA H200, torch 2.11:
- `gc.collect()`: host work

## How to confirm
`gc.callbacks` sees every collection with its generation: time the pairs of "start" and "stop" inside a step.
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
        f"`{whole(node)}` walks every object of the process {when(fact)}, and the device runs dry meanwhile; "
        "take it out (tensors go by reference count), or collect every N steps"
    )


RULE = Rule(
    code="HL403",
    name="collection-per-step",
    summary="a full collection of the cyclic collector on a step's path",
    kinds=(FactKind.COLLECTION,),
    check=check,
    examples=(
        Example(
            bad="""\
import gc

import torch


def fit(model, loader, optimizer):
    for x in loader:
        model(x.cuda(non_blocking=True)).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        gc.collect()  # expect
""",
            good="""\
import gc

import torch


def fit(model, loader, optimizer):
    gc.collect()
    gc.disable()
    for step, x in enumerate(loader):
        model(x.cuda(non_blocking=True)).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 100 == 0:
            gc.collect(1)
    gc.enable()
""",
        ),
        Example(
            bad="""\
from gc import collect

import torch


def clear():
    collect()  # expect


@torch.inference_mode()
def decode(model, token, limit: int):
    token = token.cuda()
    for _ in range(limit):
        token = model(token).argmax(-1)
        clear()
    return token
""",
            good="""\
import gc

import torch


@torch.inference_mode()
def decode(model, token, limit: int, collect):
    token = token.cuda()
    for _ in range(limit):
        token = model(token).argmax(-1)
        collect()
    return token


def unload(models):
    models.clear()
    gc.collect()
""",
        ),
        Example(
            bad="""\
import gc

import torch


def encode_all(model, batches):
    kept = []
    for batch in batches:
        kept.append(model(batch.cuda(non_blocking=True)))
        del batch
        gc.collect(generation=2)  # expect
    return kept
""",
            good="""\
import gc

import torch


def encode_all(model, batches):
    kept = []
    for batch in batches:
        try:
            kept.append(model(batch.cuda(non_blocking=True)))
        except torch.cuda.OutOfMemoryError:
            gc.collect()
            kept.append(None)
        gc.collect(generation=0)
    del model
    gc.collect()
    return kept
""",
        ),
    ),
)
