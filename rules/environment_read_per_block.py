"""An environment variable is read in every block of a model.

## Why it costs
`os.environ.get` encodes the name, looks it up and decodes the value, about a microsecond each time; the parse around it (`int`, `lower`, a
comparison) costs as much again. In sixty blocks, two branches and fifty steps that is some thousand reads of a setting that nobody changes.
It is host time where a model is bound by its launches, and nothing where it is not: a note, no more.

## Instead
- Read it once on module level or in `__init__`, and keep the parsed value.
- A module of settings that reads the variable at each attribute access moves the cost, it does not remove it: keep the value there, too.
- Where tests change it, read it at the start of each request.

`hostlint fix --review` keeps what `get` or `getenv` says when the module is imported, in a constant named after the variable. A change of
the environment after that is no longer seen. `os.environ[name]` is left: it may be an error at import.

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
from hostlint.model import Applicability, Severity
from hostlint.rule import Example, Problem, Rule
from hostlint.wording import amount, when, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact
    from hostlint.fix.place import Place
    from hostlint.model import Fix


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    reads = f"`{whole(node)}` reads the environment in every block{amount(fact)}, {when(fact)}: {fact.evidence}"
    return Problem(f"{reads}; read it once and keep the value")


READS = frozenset({"os.environ.get", "os.getenv"})


def fix(place: Place) -> Fix | None:
    """`os.environ.get("EXACT", "0")` to a constant of the module."""
    import libcst as cst

    from hostlint.fix.build import bare_code
    from hostlint.fix.imports import helper_edit

    match place.node:
        case cst.Call(func=func, args=[cst.Arg(value=cst.SimpleString() as name), *others]) if place.dotted(func) in READS:
            plain = all(isinstance(one.value, cst.SimpleString | cst.BaseNumber) or bare_code(one.value) == "None" for one in others)
        case _:
            return None
    variable = str(name.evaluated_value)
    source = bare_code(place.node)
    if not plain or not variable.isidentifier() or "\n" in source or place.outline.meaning(source.partition(".")[0], ()) != "os":
        return None
    constant = place.fresh(variable.upper())
    kept = helper_edit(place.outline, f"{constant} = {source}")
    message = f"keep what it says at import, where nothing changes `{variable}` after that"
    return place.fix(Applicability.REVIEW, message, place.replace(constant), kept)


RULE = Rule(
    code="HL310",
    name="environment-read-per-block",
    summary="an environment variable is read in every block",
    kinds=(FactKind.ENVIRONMENT_READ,),
    check=check,
    fix=fix,
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

EXACT = os.environ.get("EXACT", "0")


class Block(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.deep = int(os.environ.get("DEPTH", "2"))
        self.mix = nn.Linear(width, width)

    def forward(self, x):
        if EXACT == "1":
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
            fix=Applicability.REVIEW,
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

CLAMP = os.getenv("CLAMP")


class Model(nn.Module):
    def __init__(self, width: int, depth: int):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
            if CLAMP:
                x = x.clamp(-1, 1)
        return x
""",
            fix=Applicability.REVIEW,
        ),
    ),
)
