"""Rows that are selected, draws by their formula, numbers that are read last and indices that are moved once keep the bits."""
from __future__ import annotations

import pytest
import torch

from hostlint.fix.once import fixed_text
from hostlint.runtime_checks.bits import difference, trial

PROGRAM = """\
import torch
from torch.distributions import Normal

net = torch.nn.Identity().cuda()


def fit(batches, dtype=torch.float32, host=None):
    torch.manual_seed(5)
    table = torch.rand(9, 4, device="cuda").to(dtype)
    step = torch.zeros((), dtype=torch.long, device="cuda")
    host = torch.tensor([True, False, True, False])
    seen = []
    for batch in batches:
        x = net(batch.cuda())
        {body}
        seen.append(x)
        step += 1
    return seen, {result}

"""
BODIES = [
    ("x = x * table[step]", "0"),
    ("row = table[step]\nx = x + row * row[step]", "0"),
    ("x = x + table.t()[step].sum()", "0"),
    ("force = Normal(x, x.nan_to_num().abs() + 0.5, validate_args=False)\nx = force.sample() * force.sample((2,))", "torch.rand(3)"),
    ("force = Normal(table, x.nan_to_num().abs().to(dtype), validate_args=False)\nx = force.sample((2, 1))", "torch.rand(3)"),
    ("last = (table * x).sum().item()", "last"),
    ("last = float(table[0, 0] + x.detach()[0])", "last"),
]
BATCHES = (
    "[torch.arange(4.0), torch.full((4,), -0.0), torch.ones(4)]", "[torch.tensor([1.0, float('nan'), float('inf'), -2.0]), torch.ones(4)]",
    "[torch.arange(4.0, requires_grad=True), torch.rand(4, requires_grad=True)]",
)  # fmt: skip


@pytest.mark.parametrize(("body", "result"), BODIES, ids=[one[0].replace("\n", "; ") for one in BODIES])
def test_the_bits_stay(body: str, result: str) -> None:
    before = PROGRAM.format(body=body.replace("\n", "\n        "), result=result)
    after = fixed_text(before, "fit.py", frozenset({"HL101", "HL102", "HL107", "HL116"}), review=True)
    assert after != before
    for batches in BATCHES:
        for dtype in ("torch.float32", "torch.bfloat16", "torch.float64"):
            call = f"fit({batches}, {dtype})"
            assert difference(trial(before, call), trial(after, call)) == "", call


GATE = """\
import torch


class Gate(torch.nn.Module):
    def forward(self, x, rows):
        y = x.clone()
        y[rows] = {value}
        return y + y.sum()


def run(frames, rows):
    gate = Gate().cuda()
    rows = rows.cpu() > 0
    seen = []
    for frame in frames:
        seen.append(gate(frame.cuda(), rows))
    {after}
    return seen

"""


@pytest.mark.parametrize("value", ["0.0", "-1.5"])
def test_indices_that_are_moved_once_pick_the_same(value: str) -> None:
    before = GATE.format(value=value, after="pass")
    after = fixed_text(before, "gate.py", frozenset({"HL204"}), review=True)
    assert after.count("[on_device(rows, y.device)]") == 1
    for rows in ("torch.tensor([True, False, True])", "torch.tensor([-1, 0, 2])", "torch.eye(3)"):
        for frames in ("[torch.rand(3, 3), torch.full((3, 3), -0.0)]", "[torch.arange(9.0).view(3, 3).t()]"):
            call = f"run({frames}, {rows})"
            assert difference(trial(before, call), trial(after, call)) == "", call


def test_a_table_that_changes_is_moved_again() -> None:
    again = "rows[0] = ~rows[0]\n    for frame in frames:\n        seen.append(gate(frame.cuda(), rows))"
    before = GATE.format(value="7.0", after=again)
    after = fixed_text(before, "gate.py", frozenset({"HL204"}), review=True)
    call = "run([torch.rand(3, 3, generator=torch.Generator().manual_seed(1))], torch.tensor([True, False, True]))"
    one, other = trial(before, call), trial(after, call)
    assert difference(one, other) == ""
    assert isinstance(one, list)
    assert not torch.equal(one[0][0], one[0][1])
