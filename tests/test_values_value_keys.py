"""Caches that are looked up by what another function has read from the device."""
from __future__ import annotations

import pytest

from hostlint.scan import scan_text

MODEL = """\
from functools import lru_cache

import torch
from torch import nn

KEPT = {}


@lru_cache(maxsize=8)
def table(key, width: int):
    return width


def read(positions):
    return tuple(positions.tolist())


def bounds(x):
    return x.shape, x.dtype


def largest(x):
    return int(x.max())


class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = {}

    def look(self, key):
        return self.kept.get(key)

    def forward(self, x, positions, width: int):
        {line}
        return x
"""
LOOK = 1 + MODEL.splitlines().index("        return self.kept.get(key)")
HERE = 1 + MODEL.splitlines().index("        {line}")


def told(line: str) -> list[int]:
    findings, errors = scan_text(MODEL.replace("{line}", line), "rotary.py")
    assert not errors
    return [finding.span.line for finding in findings if finding.code == "HL304"]


@pytest.mark.parametrize(
    ("line", "where"),
    [
        ("x = x * table(read(positions), width)", HERE),
        ("x = x * table(str(read(positions)), width)", HERE),
        ("x = x * table((width, largest(positions)), width)", HERE),
        ("key = read(positions)[0], width\n        x = x * KEPT.get(key)", HERE + 1),
        ("x = x * self.look(positions.item())", LOOK),
        ("x = x * self.look((width, float(positions)))", LOOK),
    ],
)
def test_the_key_was_read_elsewhere(line: str, where: int) -> None:
    assert told(line) == [where]


@pytest.mark.parametrize(
    "line",
    [
        "x = x * table(tuple(positions.tolist()), width)",  # the read says it all
        "x = x * table(bounds(positions), width)",
        "x = x * table(width, width)",
        "x = x * self.look(width)",
        "x = x * self.look(positions.shape)",
        "here = {}\n        x = x * here.get(read(positions))",
        "x = x * len(read(positions))",
    ],
)
def test_keys_of_the_host_are_silent(line: str) -> None:
    assert told(line) == []
