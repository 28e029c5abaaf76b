"""`synchronize()` of a device, stream or event on a step's path.

## Why it costs
The host waits until the device has finished everything, whether or not anybody needs that. Timers that synchronize change what they
measure: the work of one stage can no longer overlap the next.

## Instead
- Order between streams: `stream.wait_stream(other)` or `stream.wait_event(event)`, which only the device waits for.
- Timing: record `torch.cuda.Event(enable_timing=True)` pairs and call `elapsed_time` later, or synchronize only while profiling is on.
- A host copy made with `non_blocking=True`: wait for the event of the step before (two pinned slots), not for the one just recorded.
- Before freeing or reading memory in another library: `tensor.record_stream(stream)`, or that library's own stream argument.

## Not flagged
Benchmarks that time on purpose; synchronizing behind a profiling switch, once per request, before a capture; the lagged wait for an event
of the step before; `query()`, `wait_stream`, `wait_event`.

## Evidence
NVIDIA H200, torch 2.11:
- `torch.cuda.current_stream().synchronize()`: 1 wait
- `torch.cuda.synchronize()`: waits, not reported by the debug mode
- `ev_sync()`: waits, not reported by the debug mode
- `torch.cuda.current_stream().query()`: free
- `s.record_stream(torch.cuda.current_stream())`: free
- `torch.cuda.mem_get_info()`: free

## How to confirm
torch's debug mode is silent on `torch.cuda.synchronize` and on events; a profile shows `cudaDeviceSynchronize` or `cudaEventSynchronize`.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.rule import Example, Problem, Rule
from hostlint.wording import text, waits, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    return Problem(f"{waits(fact, whole(node))}; {_instead(node)}")


def _instead(node: cst.BaseExpression) -> str:
    import libcst as cst

    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name("graph" | "make_graphed_callables"))):
            return "capture once per shape, before the loop, and replay"
        case cst.Call(func=cst.Attribute(attr=cst.Name("barrier" | "monitored_barrier"))):
            return "the collectives of a step order the ranks already; keep barriers for start and end"
        case cst.Call(func=cst.Attribute(attr=cst.Name("elapsed_time"))):
            return "read the time of a pair that was recorded some steps ago"
        case cst.Call(func=cst.Attribute(value=cst.Attribute(attr=cst.Name("cuda")) | cst.Name("cuda"))):
            return "order streams with `wait_stream`, time with events read later, or synchronize only while profiling"
        case cst.Call(func=cst.Attribute(value=cst.Name() | cst.Attribute() | cst.Subscript() as waited)):
            return f"let the device wait (`wait_event`, `wait_stream`), or wait for the `{text(waited)}` of the step before"
    return "let the device wait (`wait_event`, `wait_stream`), or wait one step late"


RULE = Rule(
    code="HL117",
    name="explicit-synchronize",
    summary="the host synchronizes with the device on a step's path",
    kinds=(FactKind.EXPLICIT_SYNCHRONIZE,),
    check=check,
    examples=(
        Example(
            bad="""\
import time

import torch

net = torch.nn.Linear(16, 16).cuda()


def stream(frames, show):
    for frame in frames:
        begin = time.perf_counter()
        out = net(frame.cuda(non_blocking=True))
        torch.cuda.synchronize()  # expect
        show(out, time.perf_counter() - begin)
""",
            good="""\
import time

import torch

net = torch.nn.Linear(16, 16).cuda()


def stream(frames, show, profiling: bool):
    for frame in frames:
        begin = time.perf_counter()
        out = net(frame.cuda(non_blocking=True))
        if profiling:
            torch.cuda.synchronize()
        show(out, time.perf_counter() - begin)
    torch.cuda.synchronize()
""",
        ),
        Example(
            bad="""\
import torch


class Gather:
    def __init__(self):
        self.side = torch.cuda.Stream()

    def fetch(self, shard):
        with torch.cuda.stream(self.side):
            full = shard.repeat(4)
        self.side.synchronize()  # expect
        return full


def run(layers, shards, x):
    gather = Gather()
    x = x.cuda()
    for layer, shard in zip(layers, shards):
        x = layer(x, gather.fetch(shard))
    return x
""",
            good="""\
import torch


class Gather:
    def __init__(self):
        self.side = torch.cuda.Stream()

    def fetch(self, shard):
        with torch.cuda.stream(self.side):
            full = shard.repeat(4)
        torch.cuda.current_stream().wait_stream(self.side)
        return full


def run(layers, shards, x):
    gather = Gather()
    x = x.cuda()
    for layer, shard in zip(layers, shards):
        x = layer(x, gather.fetch(shard))
    return x
""",
        ),
        Example(
            bad="""\
import torch


def decode(model, token, limit: int):
    token = token.cuda()
    slot = torch.empty(1, dtype=torch.long, pin_memory=True)
    copied = torch.cuda.Event()
    for _ in range(limit):
        token = model(token).argmax(-1)
        slot.copy_(token, non_blocking=True)
        copied.record()
        copied.synchronize()  # expect
        if slot[0] == 0:
            break
    return token
""",
            good="""\
import torch


def decode(model, token, limit: int):
    token = token.cuda()
    slots = torch.empty(2, 1, dtype=torch.long, pin_memory=True)
    copied = [torch.cuda.Event(), torch.cuda.Event()]
    for i in range(limit):
        token = model(token).argmax(-1)
        slots[i % 2].copy_(token, non_blocking=True)
        copied[i % 2].record()
        if i:
            copied[1 - i % 2].synchronize()
            if slots[1 - i % 2, 0] == 0:
                break
    return token
""",
        ),
    ),
)
