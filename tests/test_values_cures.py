"""A read once a request, beside the step loop or of a whole tensor, is the cure; reads in loops are told."""
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


@pytest.mark.parametrize("parts", [
    {"read": "rows = times.tolist()", "after": "rows"},
    {"after": "times.cpu()"},
    {"read": "first = times[0].item()", "used": "x = x * first"},
    {"after": "x.sum().item()"},
])
def test_one_read_beside_the_loop_is_what_its_reads_are_to_become(parts: dict[str, str]) -> None:
    assert told(**parts) == []


@pytest.mark.parametrize(("parts", "lines"), [
    ({"used": "rows = times.tolist()"}, [9]),
    ({"used": "first = times[0].item()"}, [9]),
    ({"read": "rows = [row.item() for row in times]"}, [6]),
    ({"read": "for row in times: print(row.cpu())"}, [6]),
])  # fmt: skip
def test_reads_in_loops_are_told(parts: dict[str, str], lines: list[int]) -> None:
    assert told(**parts) == lines


HELPER = """\
import torch


def length(mask):
    return {read}


def sample(model, scheduler, x, steps: int):
    mask = torch.ones(4, 4, device="cuda")
    size = length(mask)
    for i in range(steps):
        x = scheduler.step(model(x, size), i, x)
    return x
"""


@pytest.mark.parametrize(("read", "lines"), [("mask.sum(1).tolist()", []), ("mask.cpu()", []), ("mask.sum().item()", [5])])
def test_a_helper_may_read_a_whole_tensor_once(read: str, lines: list[int]) -> None:
    raw = raw_scan(ScanRequest(Path(), (SourceFile("sample.py", Path("sample.py"), True, "sample", HELPER.format(read=read)),)))
    assert [finding.span.line for finding in raw.findings if finding.code in ("HL101", "HL104", "HL105")] == lines
