"""A cache is looked up by the values of a device tensor that another function has read.

## Why it costs
To form the key the host waits for the device, copies the values and hashes them, thousands of numbers for a sequence of positions. That
costs more than what the cache saves: a rotary table is an outer product and two kernels. Where the values change, each look-up misses, and
the result is built from the host's copy of numbers that the device had all along.

## Instead
- Key by what the host knows: length, offset, shape, dtype, device.
- Or drop the cache and compute from the device's values, with the same operations: an integer read, turned into a float and uploaded is the
  integer cast on the device, bit for bit.
- A table that was computed on the host may differ in the last bits from one that the device computes: keep the place of the arithmetic.

## Not flagged
The look-up in the function that reads the values, where the read alone is told (device-tolist, device-item); keys of host numbers, shapes
and host tensors; code that runs once a request.

## Evidence
By the calls of the project, through parameters and return values. NVIDIA H200, torch 2.11, the read that the key needs:
- `x.tolist()`: 1 wait

## How to confirm
`hostlint.runtime_checks.no_cuda_sync` around a step reports the read; count the cache's hits beside it (`cache_info()`).
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
    return Problem(
        f"`{whole(node)}` looks up by the values of a device tensor {when(fact)}: {fact.evidence}; key by lengths and offsets that the "
        "host knows, or compute from the device's values without a cache"
    )


RULE = Rule(
    code="HL304",
    name="value-keyed-cache",
    summary="a cache is looked up by values that were read from a device tensor",
    kinds=(FactKind.VALUE_KEY,),
    check=check,
    examples=(
        Example(
            bad="""\
from functools import lru_cache

import torch
from torch import nn


@lru_cache(maxsize=16)
def table(positions: tuple, width: int):
    return [p / width for p in positions]


def read(positions):
    return tuple(positions.tolist())


class Rotary(nn.Module):
    def forward(self, x, positions):
        angles = table(read(positions), 8)  # expect
        lengths = table(tuple(x.shape), 8)
        return x * angles[0] + lengths[0]
""",
            good="""\
from functools import lru_cache

import torch
from torch import nn


@lru_cache(maxsize=16)
def table(positions: tuple, width: int):
    return [p / width for p in positions]


class Rotary(nn.Module):
    def forward(self, x, positions):
        lengths = table(tuple(x.shape), 8)
        return x * (positions / 8)[0] + lengths[0]
""",
        ),
        Example(
            bad="""\
import torch
from torch import nn


class Windows:
    def __init__(self):
        self.kept = {}

    def find(self, key):
        return self.kept.get(key)  # expect


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.windows = Windows()

    def forward(self, x, limit):
        window = self.windows.find(limit.item())
        return x if window is None else x * window
""",
            good="""\
import torch
from torch import nn


class Windows:
    def __init__(self):
        self.kept = {}

    def find(self, key):
        return self.kept.get(key)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.windows = Windows()

    def forward(self, x, limit: int):
        window = self.windows.find(limit)
        return x if window is None else x * window
""",
        ),
        Example(
            bad="""\
from functools import cache

import torch

net = torch.nn.Linear(8, 8).cuda()


@cache
def weight(sigma: float) -> float:
    return 1.0 / (1.0 + sigma)


def scaled(x, sigma: float):
    return x * weight(sigma)  # expect


def denoise(x, sigmas):
    x, sigmas = x.cuda(), sigmas.cuda()
    for step, sigma in enumerate(sigmas):
        x = net(scaled(x, float(sigma))) * weight(1.0 / (step + 1))
    return x
""",
            good="""\
import torch

net = torch.nn.Linear(8, 8).cuda()


def denoise(x, sigmas):
    x, weights = x.cuda(), 1.0 / (1.0 + sigmas.cuda())
    for weight in weights:
        x = net(x * weight)
    return x
""",
        ),
    ),
)
