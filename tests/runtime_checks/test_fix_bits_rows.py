"""Numbers of rows that are read at once, and numbers that the caller hands in, are those that each pass read, in value and in type."""
from __future__ import annotations

import pytest
import torch

from hostlint.fix.once import fixed_text
from hostlint.runtime_checks.bits import Raised, difference, trial

READS = frozenset({"HL101", "HL102", "HL103", "HL105"})
ROWS = """\
import torch


def rows(model, mask, pad):
    mask = mask.cuda()
    found = []
    for step in range(2):
        for i in range(len(mask)):
            row = mask[i]
            found.append({read})
        model.step(mask)
    return found, [type(one) for one in found]


class Model:
    def step(self, mask):
        self.shape = mask.shape

"""
WHOLE = (torch.bool, torch.uint8, torch.int8, torch.int32, torch.int64)
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
READ = [
    "int(mask[i].sum())", "(row != pad).sum().item()", "float(mask[i].sum())", "mask[i : i + 1].sum().item()", "row.any().item()",
    "bool(mask[i].all().item())", "int(torch.count_nonzero(row))", "row.max().item()", "row.gt(pad).long().sum(-1).item()",
    "int(mask[i].min())", "'some' if row.any() else 'none'", "(mask[i] == pad).all().item()",
]  # fmt: skip
SHAPES = ("[[0, 1, 1], [0, 0, 0]]", "[[[3, 0], [2, 2]], [[1, 1], [0, 100]]]", "[[0]]")


@pytest.mark.parametrize("read", READ)
@pytest.mark.parametrize("dtype", [*WHOLE, *FLOATS], ids=str)
def test_all_rows_at_once_give_what_each_gave(read: str, dtype: torch.dtype) -> None:
    before = ROWS.format(read=read)
    after = fixed_text(before, "rows.py", READS, review=True)
    head = after.partition("    for step")[0]
    assert ".flatten(1)." in head  # read once, before both loops
    for values in SHAPES[:: 2 if "sum(-1)" in read else 1]:  # where the dimension is named, a row has no other
        run = f"rows(Model(), torch.tensor({values}, dtype=torch.int64).to({dtype}), 1)"
        results = trial(before, run), trial(after, run)
        assert not isinstance(results[0], Raised)
        assert difference(*results) == "", (values, run)


def test_no_row_and_rows_of_nothing() -> None:
    before = ROWS.format(read="int(mask[i].sum())")
    after = fixed_text(before, "rows.py", READS, review=True)
    for shape in ((0, 3), (2, 0), (0, 0), (2, 0, 3)):
        run = f"rows(Model(), torch.zeros({shape}), 1)"
        assert difference(trial(before, run), trial(after, run)) == ""


HANDED = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.seen = []

    def forward(self, x: torch.Tensor, mask: torch.Tensor):
        lengths = mask.sum(1).tolist()
        self.seen.append((lengths, [type(one) for one in lengths]))
        return torch.stack([x[i, : int(n)].sum() for i, n in enumerate(lengths)])[:, None] + x


def denoise(x, mask, other, steps):
    net = Net().cuda()
    for _ in range(steps):
        x = x + net(x, mask) - net(x, other)
    return x, net.seen, net(x, other)

"""


@pytest.mark.parametrize("dtype", [*WHOLE, *FLOATS], ids=str)
def test_numbers_that_are_handed_in_are_those_of_each_call(dtype: torch.dtype) -> None:
    after = fixed_text(HANDED, "net.py", READS, review=True)
    assert "net(x, mask, lengths=lengths) - net(x, other, lengths=other_lengths)" in after
    assert "return x, net.seen, net(x, other)\n" in after  # not in the loop: it reads them itself
    for steps in (0, 1, 3):
        masks = ", ".join(f"torch.tensor({values}).to({dtype})" for values in ("[[1, 0], [1, 1]]", "[[0, 0], [1, 0]]"))
        run = f"denoise(torch.tensor([[0.1, -0.0], [float('nan'), 3.3]]), {masks}, {steps})"
        result = trial(HANDED, run)
        assert not isinstance(result, Raised)
        assert difference(result, trial(after, run)) == ""
