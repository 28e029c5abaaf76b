"""A whole tensor that is read once a request for its step loop is the cure; other reads of a request are told at that heat."""
from __future__ import annotations

from pathlib import Path

import pytest

from hostlint.engine import ScanRequest, raw_scan
from hostlint.project import SourceFile

PROGRAM = """\
import torch


def sample(model, scheduler, x, steps: int):
    times = torch.linspace(0, 1, steps, device="cuda")
    {read}
    for i, t in enumerate({walked}):
        x = scheduler.step(model(x, t), t, x)
        {used}
    return x, {after}
"""


def told(read: str = "pass", walked: str = "range(steps)", used: str = "pass", after: str = "None") -> list[int]:
    text = PROGRAM.format(read=read, walked=walked, used=used, after=after)
    raw = raw_scan(ScanRequest(Path(), (SourceFile("sample.py", Path("sample.py"), True, "sample", text),)))
    assert not raw.errors
    return [finding.span.line for finding in raw.findings if finding.code in ("HL101", "HL104", "HL105")]


@pytest.mark.parametrize("parts", [
    {"walked": "times.tolist()"},
    {"walked": "times.cpu()"},
    {"read": "rows = times.tolist()", "walked": "rows"},
    {"read": "rows = (times > 0.5).tolist()", "used": "x = x * rows[i]"},
    {"read": "rows = times.cpu()", "walked": "zip(rows, rows)"},
])  # fmt: skip
def test_the_cure_is_silent(parts: dict[str, str]) -> None:
    assert told(**parts) == []


@pytest.mark.parametrize(("parts", "lines"), [
    ({"read": "rows = times.tolist()", "after": "rows"}, [6]),
    ({"read": "rows = [float(row) for row in times.tolist()]"}, [6]),
    ({"used": "rows = times.tolist()"}, [9]),
    ({"after": "times.tolist()"}, [10]),
    ({"read": "first = times[0].item()", "used": "x = x * first"}, [6]),
])  # fmt: skip
def test_other_reads_are_told(parts: dict[str, str], lines: list[int]) -> None:
    assert told(**parts) == lines
