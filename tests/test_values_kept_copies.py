"""Copies to the host that one method keeps and another reads."""
from __future__ import annotations

import pytest

from hostlint.scan import scan_text

SOURCE = """\
import torch


class Dispatcher:
    def helper(self, x, sizes):
        return torch.split(x, sizes.tolist())

    def both(self, x, first, second):
        rows = first.tolist()
        return torch.split(x, second.tolist()), rows

    def settled(self, x, sizes):
        torch.cuda.synchronize()
        return torch.split(x, sizes.tolist())

    def prepare(self, mask, event):
        self.sizes = {copy}
        self.older = torch.zeros(4)
        {after}
        return mask

    def dispatch(self, x, mask, event):
        {line}
"""
HERE = 1 + SOURCE.splitlines().index("        self.sizes = {copy}")
COPY = 'mask.cuda().sum(0).to("cpu", non_blocking=True)'


def told(line: str, copy: str = COPY, after: str = "pass") -> list[int]:
    source = SOURCE.replace("{copy}", copy).replace("{after}", after).replace("{line}", line.replace("; ", "\n        "))
    findings, errors = scan_text(source, "model.py")
    assert not errors
    return [finding.span.line for finding in findings if finding.code == "HL501"]


@pytest.mark.parametrize(
    ("line", "copy"),
    [
        ("self.prepare(mask, event); return torch.split(x, self.sizes.tolist())", COPY),
        ("mask = self.prepare(mask, event); n = int(self.sizes[0]); return x[:n]", COPY),
        ("self.prepare(mask, event); return x[: self.sizes.sum().item()]", COPY.replace('"cpu"', 'torch.device("cpu")') + ".view(-1)"),
        ("self.prepare(mask, event); return self.helper(x, self.sizes)", COPY),
        ("self.prepare(mask, event); return self.helper(x, self.sizes.ravel())", COPY),
        ("self.prepare(mask, event); return self.both(x, self.older, self.sizes)", COPY),
    ],
)
def test_the_next_method_reads_what_is_not_there_yet(line: str, copy: str) -> None:
    assert told(line, copy) == [HERE]


@pytest.mark.parametrize(
    ("line", "copy", "after"),
    [
        ("self.prepare(mask, event); event.synchronize(); return torch.split(x, self.sizes.tolist())", COPY, "pass"),
        ("self.prepare(mask, event); n = x.cuda().sum().item(); return torch.split(x, self.sizes.tolist())", COPY, "pass"),
        ("self.prepare(mask, event); return torch.split(x, self.sizes.tolist())", COPY, "torch.cuda.synchronize()"),
        ("self.prepare(mask, event); return torch.split(x, self.sizes.tolist())", 'mask.cuda().to("cpu")', "pass"),
        ("self.prepare(mask, event); return x, self.sizes.shape", COPY, "pass"),
        ("n = self.sizes.tolist(); self.prepare(mask, event); return n", COPY, "pass"),  # of the step before
        ("return torch.split(x, self.sizes.tolist())", COPY, "pass"),  # whoever calls both may wait
        ("self.prepare(mask, event); return self.settled(x, self.sizes)", COPY, "pass"),
        ("self.prepare(mask, event); return self.unknown(x, self.sizes)", COPY, "pass"),
        ("self.prepare(mask, event); return self.both(x, mask.cuda(), self.sizes)", COPY, "pass"),  # the first read waits
    ],
)
def test_what_is_waited_for_or_not_read_is_silent(line: str, copy: str, after: str) -> None:
    assert told(line, copy, after) == []
