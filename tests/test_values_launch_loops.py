"""Loops that write a tensor row by row, and loops that have to."""
from __future__ import annotations

from pathlib import Path

import pytest

from hostlint.engine import ScanRequest, raw_scan
from hostlint.model import HeatLevel, Severity
from hostlint.project import SourceFile
from hostlint.scan import scan_text

MODEL = """\
import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(8, 8)

    def forward(self, a, b, n: int, ends, host, spans: list[int]):
        host_rows = torch.zeros(8, 8)
        total = b.sum()
        {line}
        return b
"""
HERE = 1 + MODEL.splitlines().index("        {line}")


def told(line: str) -> list[int]:
    findings, errors = scan_text(MODEL.replace("{line}", line), "decoder.py")
    assert not errors
    found = [finding for finding in findings if finding.code == "HL309"]
    assert {finding.severity for finding in found} <= {Severity.NOTE}
    return [finding.span.line for finding in found]


@pytest.mark.parametrize(
    "body",
    [
        "b[:, y] = a[:, y - n] * (1 - y / n) + b[:, y] * (y / n)",
        "b[y, :, : y + 1] = 0",
        "b[y] += a[n - y]",
        "b[y] = torch.where(a[y] > 0, a[y], 0.0)",
        "b[..., y, :] = a[..., y, :].float() * float(y)",
    ],
)
def test_rows_that_do_not_depend_on_each_other(body: str) -> None:
    assert told(f"for y in range(n):\n            {body}") == [HERE + 1]


def test_a_value_that_the_counter_decides_may_have_a_name() -> None:
    assert told("for y in range(n):\n            end = (y // 4 + 1) * 4\n            b[y, :end] = 1") == [HERE + 2]


PENALTY = """\
for token in set(self.seen_tokens[-16:]):
            if token < 0 or token >= b.shape[-1]:
                continue
            b[0, token] /= 1.05"""
RAMP = """\
for y in range(n):
            row = b[0, y]
            if y < n - 2:
                mask = torch.full_like(row, 0.0)
                mask[3] = row[3]
                b[0, y] = mask
            else:
                b[0, y, 3] = 1.0"""


@pytest.mark.parametrize(
    ("line", "where"),
    [
        (PENALTY, 4),
        ("for end in host.tolist():\n            b[0, end] = float('-inf')", 2),
        ("for y, end in enumerate(spans):\n            b[y, :end] = 1", 2),
        ("for row, end in zip(b, spans):\n            row[:end] = False", 2),
        ("for row, end in zip(b, [len(one) for one in host]):\n            row[end:] *= 2.0", 2),
        (RAMP, 6),
        ("for y in range(n):\n            b[y] = a[y] if y > 2 else 0.0", 2),
    ],
)
def test_rows_by_lists_and_under_tests_of_the_counter(line: str, where: int) -> None:
    assert told(line) == [HERE + where - 1]


def test_a_loop_is_told_once() -> None:
    assert told("for y in range(n):\n            b[y, 0] = 0\n            b[y, 1] = 1") == [HERE + 1]


@pytest.mark.parametrize(
    "line",
    [
        "for y in host:\n            if y in self.seen:\n                continue\n            b[:, y] = a[:, y]",
        "for y in range(n):\n            if a[y].any():\n                b[y] = 0",
        "for y in (0, 3):\n            b[y] = 0",
        "for row, end in zip(b, spans):\n            row[:end] = b[0, :end]",
        "for row in b:\n            row[0] = total\n            total = total + 1",
        "for end in spans:\n            total = b[:, end] if end > 2 else total\n            b[:, end] = total",
        "for end in spans:\n            with self.lock(end):\n                b[:, end] = 0",
        "for row in host_rows:\n            row[:n] = 0",
        "for y in range(n):\n            b[:, y : y + 4] += a",  # tiles that overlap
        "for y in range(n):\n            b[y : y + 4] = b[y : y + 4] * 0.5",
        "for end in spans:\n            b[:end] *= 0.5",
        "for y, row in enumerate([a.float(), b * 2, a + b, a * b, a - b]):\n            b[y] = row",  # tensors of their own
        "for row in [a.float(), b * 2, a + b, a * b, a - b]:\n            row[0] = 0",
    ],
)
def test_rows_by_lists_that_depend_on_more_are_silent(line: str) -> None:
    assert told(line) == []


@pytest.mark.parametrize(
    "line",
    [
        "for y in range(1, n):\n            b[:, y] = b[:, y - 1] + a[:, y]",  # a recurrence
        "for y in range(n):\n            b[:, y] = b.sum(1)",
        "for y in range(n):\n            b[:, y] = total\n            total = total + 1",
        "for y in range(n):\n            b[:, y] = self.mix(a[:, y])",
        "for y in range(n):\n            b[:, y] = print(y)",
        "for y in range(3):\n            b[:, y] = a[:, y]",
        "for y in range(2, 4):\n            b[:, y] = a[:, y]",
        "for y in range(n):\n            if host[y]:\n                b[:, y] = a[:, y]\n                break",
        "for y in range(n):\n            for x in range(n):\n                pass\n            b[:, y] = a[:, y]",
        "for y in range(n):\n            b[:, 0] = a[:, 0]",  # the same row
        "for y in range(n):\n            host_rows[y] = y",
        "rows = []\n        for y in range(n):\n            rows.append(a[:, y])",
        "for y in range(n):\n            b[y] += [0] * y",
        "for y in host:\n            b[:, y] = a[:, y]",
    ],
)
def test_rows_that_depend_on_more_are_silent(line: str) -> None:
    assert told(line) == []


def test_one_pass_is_no_loop() -> None:
    assert told("y = n\n        b[:, y] = a[:, y]") == []


def test_a_row_that_waits_is_told_for_that_alone() -> None:
    rows = "row = b.flatten()\n        for y in range(n):\n            row[y] = 1.0"
    findings, _ = scan_text(MODEL.replace("{line}", rows), "decoder.py")
    found = [finding.code for finding in findings if finding.span.line == HERE + 2]
    assert found == ["HL205"]


def test_a_request_is_told_as_such() -> None:
    text = "import torch\n\n\ndef blend(a: torch.Tensor, b: torch.Tensor, n: int):\n    a, b = a.cuda(), b.cuda()\n"
    text += "    for y in range(n):\n        b[:, y] = a[:, y] * (y / n)\n    return b\n"
    raw = raw_scan(ScanRequest(Path(), (SourceFile("blend.py", Path("blend.py"), True, "blend", text),)))
    assert [(f.span.line, f.heat.level) for f in raw.findings if f.code == "HL309"] == [(7, HeatLevel.REQUEST)]
