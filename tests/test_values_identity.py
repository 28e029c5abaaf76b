"""Caches that are looked up by a tensor's identity: which keys are told, and which stand on firm ground."""
from __future__ import annotations

import pytest

from hostlint.scan import scan_text

MODEL = """\
import weakref
from functools import lru_cache

import torch
from torch import nn

TABLES = {}


def address(x):
    return x.data_ptr(), x.shape


@lru_cache(maxsize=2)
def memo(x: torch.Tensor, width: int):
    return x * width


class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept, self.table, self.entry, self.seen = None, None, None, {}
        self.register_buffer("weight", torch.ones(8))

    def by_is(self, x):
        if x is not self.kept:
            self.table, self.kept = x.cos(), x
        return self.table

    def by_helper(self, x):
        key = address(x)
        if self.entry is not None and self.entry[0] == key:
            return self.entry[2]
        self.entry = (key, x, x.cos())
        return self.entry[2]

    def forward(self, x, cos, step: int):
        cos = cos.contiguous()
        made = torch.cat([cos, cos])
        {line}
        return x
"""
HERE = 1 + MODEL.splitlines().index("        {line}")


def told(line: str) -> list[int]:
    findings, errors = scan_text(MODEL.replace("{line}", line), "rotary.py")
    assert not errors
    return [finding.span.line for finding in findings if finding.code == "HL305"]


@pytest.mark.parametrize(
    "line",
    [
        "key = made.data_ptr()\n        if key not in TABLES:\n            TABLES[key] = cos.cos()\n        x = x * TABLES[key]",
        "key = (id(made), step)\n        if key not in self.seen:\n            self.seen[key] = cos.cos()\n        x = x * self.seen[key]",
        "table = TABLES.get(made.data_ptr())\n        if table is None:\n            table = TABLES[made.data_ptr()] = cos.cos()",
        "key = made.data_ptr(), 1\n        if getattr(self, 'entry')[0] != key:\n            self.entry = key, cos.cos()",
    ],
)
def test_an_address_for_a_key_while_nothing_holds_the_tensor(line: str) -> None:
    assert told(line)[:1] == [HERE]


@pytest.mark.parametrize(
    "line",
    [
        "x = x * self.by_is(torch.cat([cos, cos]))",
        "x = x * self.by_is(cos[:step].clone())",
        "x = x * self.by_is(cos.view(-1))",  # a view is another object
        "x = x * self.by_helper(torch.cat([cos, cos]))",
        "x = x * memo(torch.stack([cos, cos]), 2)",
        "for other in range(step):\n            x = x * memo(torch.stack([cos, cos]), 2)",
    ],
)
def test_a_fresh_tensor_never_hits(line: str) -> None:
    assert told(line) == [HERE + line.count("\n")]


@pytest.mark.parametrize(
    "line",
    [
        "key = cos.data_ptr()\n        if key not in TABLES:\n            TABLES[key] = (cos, cos.cos())\n        x = x * TABLES[key][1]",
        "key = self.weight.data_ptr()\n        if key not in TABLES:\n            TABLES[key] = x.cos()\n        x = x * TABLES[key]",
        "key = cos.data_ptr()\n        weakref.ref(cos, print)\n        if key not in TABLES:\n            TABLES[key] = cos.cos()",
        "key = cos.data_ptr()\n        if key not in TABLES:\n            TABLES[key] = cos.cos()",  # it may live as long as the model
        "key = id(self)\n        if key not in TABLES:\n            TABLES[key] = cos.cos()",
        "here = {}\n        here[cos.data_ptr()] = cos.cos()\n        x = here[cos.data_ptr()]",  # gone with the call
        "if cos.data_ptr() == x.data_ptr():\n            x = x + 1",
        "x = x * self.by_is(cos)",  # contiguous() may have given it as it was
        "x = x * self.by_is(self.weight)",
        "x = x * self.by_helper(cos.view(-1))",  # a view has its base's address
        "x = x * memo(self.weight, 2)",
        "both = torch.cat([cos, cos])\n        x = x * self.by_is(both) * self.by_is(both)",  # both look-ups share it
        "both = torch.cat([cos, cos])\n        for _ in range(step):\n            x = x * self.by_is(both)",
    ],
)
def test_what_stays_or_is_held_is_silent(line: str) -> None:
    assert told(line) == []


GUIDED = """\
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept, self.table = None, None
        self.mix = nn.Linear(8, 8)

    def modulation(self, cond):
        if cond is not self.kept:
            self.table, self.kept = self.mix(cond), cond
        return self.table

    def forward(self, x, cond):
        return x * self.modulation(cond)


def denoise(model: Model, x, timesteps):
    positive = {positive}
    negative = {negative}
    for t in timesteps:
        x = model(x, {first}) - model(x, {second})
    return x
"""


def guided(positive: str, negative: str, first: str = "positive", second: str = "negative") -> list[int]:
    text = GUIDED
    for name, value in (("positive", positive), ("negative", negative), ("first", first), ("second", second)):
        text = text.replace("{" + name + "}", value)
    return [finding.span.line for finding in scan_text(text, "guided.py")[0] if finding.code == "HL305"]


def test_branches_of_guidance_that_each_make_the_same_tensor_drive_each_other_out() -> None:
    zeros = 'torch.zeros(1, 8, device="cuda")'
    line = 1 + GUIDED.splitlines().index("    negative = {negative}")
    assert guided(zeros, zeros) == [line]
    assert guided(zeros, "positive") == []
    assert guided(zeros, zeros, second="positive") == []
    assert guided(zeros, 'torch.ones(1, 8, device="cuda")') == []  # they differ: the work is not the same
    assert guided("1", "2", zeros, "positive") == [line + 2]  # made anew in each pass, through the function that hands it on
