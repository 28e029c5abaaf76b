"""Caches by hand whose key is never stored, and those that store it somewhere."""
from __future__ import annotations

import pytest

from hostlint.scan import scan_text

MODEL = """\
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rope = nn.Linear(2, 8)
        self._key = None
        self._table = None

    def reset(self):
        {reset}

    def forward(self, x, ids):
        size = tuple(x.shape[2:])
        {line}
        return x * table
"""
HERE = 1 + MODEL.splitlines().index("        {line}")
HIT = "if self._key == size and self._table is not None:\n            table = self._table\n        else:\n            "
MISS = "if self._key is None or self._key != size:\n            self._table = self.rope(ids)\n        table = self._table"


def told(line: str, reset: str = "pass", model: str = MODEL) -> list[int]:
    findings, errors = scan_text(model.replace("{line}", line).replace("{reset}", reset), "model.py")
    assert not errors
    return [finding.span.line for finding in findings if finding.code == "HL305"]


@pytest.mark.parametrize(
    ("line", "reset"),
    [
        (HIT + "table = self.rope(ids)\n            self._table = table", "pass"),
        (HIT + "table = self.rope(ids)\n            self._table = table", "self._key = None"),
        (HIT + "self._table = table = (self.rope(ids), size)", "self._table = None"),
        (MISS, "pass"),
        ("if size != self._key:\n            self._table = self.rope(ids)\n        table = self._table", "pass"),
    ],
)
def test_a_key_that_nobody_stores_never_hits(line: str, reset: str) -> None:
    assert told(line, reset) == [HERE]


@pytest.mark.parametrize(
    ("line", "reset"),
    [
        (HIT + "table = self.rope(ids)\n            self._table, self._key = table, size", "pass"),
        (MISS, "self._key = 3"),
        ("table = self.rope(ids)\n        if self._key == size:\n            table = table * 2", "pass"),  # keeps nothing
        ("if self._key is None:\n            self._table = self.rope(ids)\n        table = self._table", "pass"),
    ],
)
def test_a_key_that_is_stored_and_tests_of_nothing_kept_are_silent(line: str, reset: str) -> None:
    assert told(line, reset) == []


def test_a_public_attribute_may_be_set_from_outside() -> None:
    assert told(MISS.replace("_key", "key"), model=MODEL.replace("_key", "key")) == []


def test_a_subclass_may_store_it() -> None:
    below = "\n\nclass Child(Model):\n    def begin(self, size):\n        self._key = size\n"
    assert told(MISS, model=MODEL + below) == []
    assert told(MISS, model=MODEL + below.replace("_key = size", "_other = size")) == [HERE]
