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

    def forward(self, a, b, n: int, ends, host):
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
