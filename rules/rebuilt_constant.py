"""An index, position, frequency or mask tensor built anew at every step from numbers that stay the same.

## Why it costs
`torch.arange`, `linspace`, `eye`, a triangle of ones and what is computed from them are kernels of their own: a launch each, a few
microseconds of host time each, in every block, branch and step. The values depend on shapes, on literals and on attributes that only
`__init__` sets (or the loop around the call hands every call the same arguments), so that the first result is as good as any later one.
A model that is bound by its launches pays for each; one that is bound by the device pays little. The finding is a note: measure first.

## Instead
- Made of literals and attributes of `__init__`: a buffer (`register_buffer(..., persistent=False)`), made in `__init__`.
- Made of shapes: keep it per (shape, dtype, device) in a small `functools.lru_cache` on module level, and never write into what it gives.
- The same for all blocks of one forward: compute it once per forward and hand it to the blocks.
- In a loop: make it before the loop.

The same operations in the same order on the same device give the same bits; a table computed on the host and then moved is not always
equal to one computed on the device.

`hostlint fix` puts it before its loop, or keeps it by one small function that it adds to the module:
`kept(lambda n, device: torch.arange(n, device=device), n, x.device)` makes the tensor once for each of its arguments, by the same call as
before, and hands the same one out from then on. What is compiled or captured makes its own, since a captured tensor is not filled yet;
under inference mode an ordinary tensor is made, so that training may use it too. Whatever may differ from call to call is among the
arguments, names of enclosing functions and what the module's objects hold included. For review: nothing may write into the shared tensor,
and 64 of them are held, so that a square mask for many lengths is better made once a request.

## Not flagged
One index that is made on the device once a forward and used as it is, save one that grows with the tokens of a request whose steps a loop
is seen to take; buffers that are written to (`zeros`, `empty`, `ones`, `full`),
random values, `..._like`; values that depend on the loop's variable, a step
counter or a token; positions behind a cache that grows; places under `lru_cache`, behind a test for a kept value, in `__init__`; code that
runs once a request. Where the same place uploads host data, only that is reported (HL2).

Constants that are joined in one table or grid are one finding, at the first of them, with the launches of the whole. Fewer than six
launches, once a step, on a size that neither the tokens nor the pixels decide (the frequencies of a time step) are a trifle: their finding
is `possible`, and hidden unless `--min-confidence possible` asks for it.

## Evidence
By the graph of values and the calls; the sides of a picture or grid that a function is handed as numbers (`height: int`,
`q_size: list[int]`) are taken to stay, unless a loop over data hands them over. Only a loop over a module's parts (layers, experts, heads)
repeats work in each block; one over pieces of data (chunks, tiles, micro-batches) does not.
NVIDIA H200, torch 2.11: the factory itself does not wait; what it costs is its launches.
- `torch.arange(10, device=d)`: free

## How to confirm
Count the calls per step with `hostlint.runtime_checks.RecordOps`, or compare a profile's launches with and without the table.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.fix.memo import hoisted_or_kept
from hostlint.model import Applicability, HeatLevel, Severity
from hostlint.rule import Example, Problem, Rule
from hostlint.wording import amount, when, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact

KEEP = {
    "fixed": "make it once in `__init__` and keep it in a buffer (`persistent=False`)",
    "shape": "keep it per (shape, dtype, device) in a module-level `lru_cache`, or compute it once per forward and hand it down",
    "loop": "compute it once before that loop and hand it down",
}


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    in_loop = fact.heat.level is HeatLevel.LOOP and len(fact.heat.chain) == 1
    cure = "make it before the loop" if in_loop else KEEP.get(fact.detail, KEEP["shape"])
    return Problem(f"`{whole(node)}` builds the same values again{amount(fact)}, {when(fact)}: it depends on {_source(fact)}; {cure}")


def _source(fact: Fact) -> str:
    return f"arguments that do not change ({fact.evidence})" if fact.detail == "loop" else f"nothing but {fact.evidence}"


RULE = Rule(
    code="HL301",
    name="rebuilt-constant",
    summary="an index, position, frequency or mask tensor is built again at every step from values that stay the same",
    kinds=(FactKind.REBUILT_CONSTANT,),
    check=check,
    fix=hoisted_or_kept,
    severity=Severity.NOTE,
    examples=(
        Example(
            bad="""\
import math

import torch
from torch import nn


class Rotary(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.half = width // 2

    def forward(self, x):
        steps = torch.arange(self.half, device=x.device, dtype=torch.float32)  # expect
        places = torch.arange(x.shape[1], device=x.device).float()
        angles = torch.outer(places, torch.exp(steps * (-math.log(10000.0) / self.half)))
        return angles.cos(), angles.sin()
""",
            good="""\
import math

import torch
from torch import nn

KEPT = {}


def kept(make, *key):
    \"\"\"`make(*key)`, made once for each key and then shared: nothing may write into it. A compiler and a capture make their own.\"\"\"
    captures = torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()
    if captures or torch.compiler.is_compiling():
        return make(*key)
    name = (make.__code__, *key, *map(type, key))
    found = KEPT.get(name)
    if found is None:
        if len(KEPT) >= 64:
            KEPT.clear()
        with torch.inference_mode(False):
            found = KEPT[name] = make(*key)
    return found


class Rotary(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.half = width // 2

    def forward(self, x):
        steps = kept(lambda half, device: torch.arange(half, device=device, dtype=torch.float32), self.half, x.device)
        places = kept(lambda size, device: torch.arange(size, device=device).float(), x.shape[1], x.device)
        angles = torch.outer(places, torch.exp(steps * (-math.log(10000.0) / self.half)))
        return angles.cos(), angles.sin()
""",
            fix=Applicability.REVIEW,
        ),
        Example(
            bad="""\
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)

    def forward(self, x, seen: int):
        q, k, v = self.qkv(x).chunk(3, -1)
        length = x.shape[1]
        allowed = torch.tril(torch.ones(length, length, dtype=torch.bool, device=x.device))  # expect
        here = torch.arange(seen, seen + length, device=x.device)
        bias = here[None, :] - here[:, None]
        return torch.where(allowed, q @ k.mT + bias, -1e4).softmax(-1) @ v
""",
            good="""\
import torch
from torch import nn

KEPT = {}


def kept(make, *key):
    \"\"\"`make(*key)`, made once for each key and then shared: nothing may write into it. A compiler and a capture make their own.\"\"\"
    captures = torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()
    if captures or torch.compiler.is_compiling():
        return make(*key)
    name = (make.__code__, *key, *map(type, key))
    found = KEPT.get(name)
    if found is None:
        if len(KEPT) >= 64:
            KEPT.clear()
        with torch.inference_mode(False):
            found = KEPT[name] = make(*key)
    return found


class Attention(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)

    def forward(self, x, seen: int):
        q, k, v = self.qkv(x).chunk(3, -1)
        length = x.shape[1]
        allowed = kept(
            lambda length, device: torch.tril(torch.ones(length, length, dtype=torch.bool, device=device)),
            length, x.device,
        )
        here = torch.arange(seen, seen + length, device=x.device)
        bias = here[None, :] - here[:, None]
        return torch.where(allowed, q @ k.mT + bias, -1e4).softmax(-1) @ v
""",
            fix=Applicability.REVIEW,
        ),
        Example(
            bad="""\
import torch

net = torch.nn.Linear(4, 4).cuda()


def sample(x, rows: int, steps: int):
    for step in range(steps):
        columns = torch.linspace(0, 1, x.shape[-1], device=x.device)  # expect
        noise = torch.randn(rows, device=x.device)
        window = torch.arange(step, step + rows, device=x.device)
        x = net(x * columns) + noise[:, None] + window[:, None]
    return x
""",
            good="""\
import torch

net = torch.nn.Linear(4, 4).cuda()


def sample(x, rows: int, steps: int):
    columns = torch.linspace(0, 1, x.shape[-1], device=x.device)
    for step in range(steps):
        noise = torch.randn(rows, device=x.device)
        window = torch.arange(step, step + rows, device=x.device)
        x = net(x * columns) + noise[:, None] + window[:, None]
    return x
""",
        ),
        Example(
            bad="""\
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.mix = nn.Linear(width, width)

    def forward(self, x, offset: int):
        where = torch.arange(offset, offset + x.shape[1], device=x.device)  # expect
        return x + self.mix(x) * where[None, :, None]


class Stack(nn.Module):
    def __init__(self, width: int, depth: int):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))

    def forward(self, x, offset: int):
        for block in self.blocks:
            x = block(x, offset)
        return x
""",
            good="""\
import torch
from torch import nn

KEPT = {}


def kept(make, *key):
    \"\"\"`make(*key)`, made once for each key and then shared: nothing may write into it. A compiler and a capture make their own.\"\"\"
    captures = torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()
    if captures or torch.compiler.is_compiling():
        return make(*key)
    name = (make.__code__, *key, *map(type, key))
    found = KEPT.get(name)
    if found is None:
        if len(KEPT) >= 64:
            KEPT.clear()
        with torch.inference_mode(False):
            found = KEPT[name] = make(*key)
    return found


class Block(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.mix = nn.Linear(width, width)

    def forward(self, x, offset: int):
        where = kept(
            lambda offset, size, device: torch.arange(offset, offset + size, device=device),
            offset, x.shape[1], x.device,
        )
        return x + self.mix(x) * where[None, :, None]


class Stack(nn.Module):
    def __init__(self, width: int, depth: int):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))

    def forward(self, x, offset: int):
        for block in self.blocks:
            x = block(x, offset)
        return x
""",
            fix=Applicability.REVIEW,
        ),
    ),
)
