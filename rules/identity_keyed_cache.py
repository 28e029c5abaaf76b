"""A cache that is looked up by a tensor's identity (`data_ptr()`, `id`, `is`, a memo's hash): fresh tensors miss, freed ones mislead.
Or by a key that nobody stores, which always misses.

## Why it costs
A tensor hashes by its identity, not by its values. A cache on top of that pays off where the very same object comes again. A caller that
joins, slices or copies the tensor at every step (or makes one for each branch of guidance) hands over a new object each time: the look-up
always misses, the result is computed anew, and the cache keeps the last ones alive for nothing.

An address is worse. The allocator gives the memory of a freed tensor to the next one, so that a cache that holds the address but not the
tensor finds the result of another tensor, and nothing reports it.

A cache by hand (`if self._key == key: result = self._kept`) whose `self._key` is never set computes everything anew, and looks as if it did
not.

## Instead
- Store the key where the result is stored.
- Key by what decides the result on the host: lengths, offsets, shape, dtype, device, a counter of the request.
- Or make the tensor once for each request (both branches share it), and let the cache hold a reference: `kept is x`, with x kept.
- Keep the joined or sliced tensor beside its sources, keyed by these.
- Where the cache serves the blocks of one forward, compute the result once in the forward and hand it down.

## Not flagged
Addresses of weights, buffers, key-value pools and whatever is not seen to be made in the step, for it may stay; keys beside which the
cache holds the tensor, or a weak reference; a fresh tensor that several calls share; pointers that are compared with each other or handed
to kernels; code that runs once a request.

## Evidence
By the graph of values: what is looked up, and what the calls hand over. A serving engine's rotary cache, keyed by addresses of tensors
that each forward joins anew, missed in every step, or found a recycled address.

## How to confirm
Count hits and misses over two steps; for an address, free the tensor, make another of the same size, and look that up.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.rule import Example, Problem, Rule
from hostlint.wording import when, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    if fact.detail == "address":
        return Problem(
            f"`{whole(node)}` is the key of a cache {when(fact)}, but {fact.evidence}: a new tensor at a freed one's address finds its "
            "result; keep the tensor beside the key and compare with `is`, or key by shape, offset and device"
        )
    if fact.detail == "unkept":
        return Problem(
            f"`{whole(node)}` never finds the kept result, {when(fact)}: {fact.evidence}; store the key where the result is stored"
        )
    return Problem(
        f"`{whole(node)}` makes a new tensor {when(fact)}, and {fact.evidence}, so that it never hits: make the tensor once and pass the "
        "same object, or key by what it is made from"
    )


RULE = Rule(
    code="HL305",
    name="identity-keyed-cache",
    summary="a cache is keyed by the identity of a tensor that is fresh at every step, an address that may be given away, or nothing",
    kinds=(FactKind.IDENTITY_KEY,),
    check=check,
    examples=(
        Example(
            bad="""\
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.rope = nn.Linear(2, width)
        self._size = None
        self._table = None

    def forward(self, x, ids):
        size = tuple(x.shape[2:])
        if self._size == size and self._table is not None:  # expect
            table = self._table
        else:
            table = self.rope(ids)
            self._table = table
        return x * table
""",
            good="""\
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.rope = nn.Linear(2, width)
        self._size = None
        self._table = None

    def forward(self, x, ids):
        size = tuple(x.shape[2:])
        if self._size == size and self._table is not None:
            table = self._table
        else:
            table = self.rope(ids)
            self._table = table
            self._size = size
        return x * table
""",
        ),
        Example(
            bad="""\
import torch
from torch import nn


class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = {}

    def table(self, cos):
        key = (cos.data_ptr(), tuple(cos.shape))  # expect
        if key not in self.tables:
            self.tables[key] = torch.cat([cos, cos], -1)
        return self.tables[key]

    def forward(self, x, cos, limit: int):
        same = x.data_ptr() == cos.data_ptr()
        joined = torch.cat([cos, cos], -1)  # expect
        return x if same else x * self.table(joined)[:limit]
""",
            good="""\
import torch
from torch import nn


class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = {}

    def table(self, cos):
        key = (cos.data_ptr(), tuple(cos.shape))
        if key not in self.tables:
            self.tables[key] = (cos, torch.cat([cos, cos], -1))
        return self.tables[key][1]

    def forward(self, x, cos, limit: int):
        same = x.data_ptr() == cos.data_ptr()
        return x if same else x * self.table(cos)[:limit]
""",
        ),
        Example(
            bad="""\
import torch
from torch import nn


class Camera(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept, self.rays = None, None

    def cast(self, poses):
        if self.kept is not poses:
            self.rays = poses.inverse()
            self.kept = poses
        return self.rays

    def forward(self, x, poses, start: int, end: int):
        window = poses[:, start:end].contiguous()  # expect
        return x + self.cast(window)
""",
            good="""\
import torch
from torch import nn


class Camera(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept, self.rays = None, None

    def cast(self, poses):
        if self.kept is not poses:
            self.rays = poses.inverse()
            self.kept = poses
        return self.rays

    def forward(self, x, poses, start: int, end: int):
        rays = self.cast(poses)
        return x + rays[:, start:end].contiguous()
""",
            also=("HL113",),
        ),
        Example(
            bad="""\
from functools import lru_cache

import torch

net = torch.nn.Linear(8, 8).cuda()


@lru_cache(maxsize=4)
def spread(mask: torch.Tensor, heads: int):
    return mask.float().repeat(heads, 1)


def denoise(x, mask, steps: int):
    mask = mask.cuda()
    for step in range(steps):
        shifted = torch.cat([mask, x[:1] > 0])  # expect
        x = net(x) * spread(shifted, 4) * spread(mask, 4)
    return x
""",
            good="""\
from functools import lru_cache

import torch

net = torch.nn.Linear(8, 8).cuda()


@lru_cache(maxsize=4)
def spread(mask: torch.Tensor, heads: int):
    return mask.float().repeat(heads, 1)


def denoise(x, mask, steps: int):
    mask = mask.cuda()
    for step in range(steps):
        shifted = torch.cat([mask, x[:1] > 0])
        x = net(x) * shifted.float().repeat(4, 1) * spread(mask, 4)
    return x
""",
        ),
    ),
)
