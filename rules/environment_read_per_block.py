"""An environment variable is read in every block of a model.

## Why it costs
`os.environ.get` encodes the name, looks it up and decodes the value, about a microsecond each time; the parse around it (`int`, `lower`, a
comparison) costs as much again. In sixty blocks, two branches and fifty steps that is some thousand reads of a setting that nobody changes.
It is host time where a model is bound by its launches, and nothing where it is not: a note, no more.

## Instead
- Read it once on module level or in `__init__`, and keep the parsed value.
- A module of settings that reads the variable at each attribute access moves the cost, it does not remove it: keep the value there, too.
- Where tests change it, read it at the start of each request.

## Not flagged
Reads at import, in `__init__`, in kept functions (`lru_cache`), once a request or step; settings objects whose access the scan cannot see
into.

## Evidence
By the call graph: a loop over the blocks reaches the read. Nothing waits for the device.

## How to confirm
`python -X importtime` will not show it; `cProfile` of one step counts the calls of `os.environ`'s `__getitem__` and `decode`.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.model import Severity
from hostlint.rule import Example, Problem, Rule
from hostlint.wording import when, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    return Problem(f"`{whole(node)}` reads the environment in every block, {when(fact)}: {fact.evidence}; read it once and keep the value")


RULE = Rule(
    code="HL310",
    name="environment-read-per-block",
    summary="an environment variable is read in every block",
    kinds=(FactKind.ENVIRONMENT_READ,),
    check=check,
    severity=Severity.NOTE,
    examples=(
        Example(
            bad="""\
import os

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.deep = int(os.environ.get("DEPTH", "2"))
        self.mix = nn.Linear(width, width)

    def forward(self, x):
        if os.environ.get("EXACT", "0") == "1":  # expect
            return self.mix(x.double())
        return self.mix(x)


class Model(nn.Module):
    def __init__(self, width: int, depth: int):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))

    def forward(self, x):
        flipped = os.environ.get("FLIP", "0") == "1"
        for block in self.blocks:
            x = block(x)
        return x.flip(0) if flipped else x
""",
            good="""\
import os

import torch
from torch import nn

EXACT = os.environ.get("EXACT", "0") == "1"


class Block(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.mix = nn.Linear(width, width)

    def forward(self, x):
        return self.mix(x.double() if EXACT else x)


class Model(nn.Module):
    def __init__(self, width: int, depth: int):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x
""",
        ),
        Example(
            bad="""\
from os import getenv

import torch
from torch import nn


def fused() -> bool:
    return getenv("FUSED") is not None  # expect


class Layer(nn.Module):
    def forward(self, x):
        return x.square() if fused() else x * x


class Model(nn.Module):
    def __init__(self, depth: int):
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(depth))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
""",
            good="""\
from functools import lru_cache
from os import getenv

import torch
from torch import nn


@lru_cache(maxsize=1)
def fused() -> bool:
    return getenv("FUSED") is not None


class Layer(nn.Module):
    def forward(self, x):
        return x.square() if fused() else x * x


class Model(nn.Module):
    def __init__(self, depth: int):
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(depth))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
""",
        ),
        Example(
            bad="""\
import os

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width: int, depth: int):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
            if os.getenv("CLAMP"):  # expect
                x = x.clamp(-1, 1)
        return x
""",
            good="""\
import os

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width: int, depth: int):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))

    def forward(self, x):
        clamps = os.getenv("CLAMP")
        for layer in self.layers:
            x = layer(x)
            if clamps:
                x = x.clamp(-1, 1)
        return x
""",
        ),
    ),
)
