"""A mask that every step passes is searched once; masks that differ from step to step are searched each time."""
from __future__ import annotations

import pytest

from hostlint.fix.once import fix_text
from hostlint.model import Applicability

PROGRAM = """\
import torch
from torch import nn


class Writer(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.mix = nn.Linear(width, width)

    def forward(self, x, mask):
        hidden = self.mix(x)
        picked = {picked}
        return hidden, picked


def sample(net: Writer, x, mask, steps: int):
    x, mask = x.cuda(), mask.cuda() > 0
    for step in range(steps):
        {call}
    return x, picked
"""
CALL = "x, picked = net(x, mask)"
SELECTED = [
    ("hidden[mask]", "select_masked(hidden, mask)"),
    ("hidden.masked_select(mask.unsqueeze(-1))", "select_masked(hidden, mask).reshape(-1)"),
    ("hidden.masked_select(mask.unsqueeze(-1).bool()).view(-1, 4)", "select_masked(hidden, mask).reshape(-1).view(-1, 4)"),
    ("hidden[..., 0].masked_select(mask.bool())", "select_masked(hidden[..., 0], mask).reshape(-1)"),
]


def fixed(text: str) -> tuple[str, set[Applicability]]:
    result = fix_text(text, "sample.py", frozenset({"HL111"}), review=True)
    return result.files[0].text if result.files else text, {one.fix.applicability for one in result.mended if one.fix is not None}


@pytest.mark.parametrize(("before", "after"), SELECTED)
def test_positions_of_a_mask_that_stays_are_found_once(before: str, after: str) -> None:
    text, kinds = fixed(PROGRAM.format(picked=before, call=CALL))
    assert text.partition("class Writer")[2] == PROGRAM.format(picked=after, call=CALL).partition("class Writer")[2]
    assert kinds == {Applicability.REVIEW}


@pytest.mark.parametrize(
    ("picked", "call"),
    [
        ("hidden[mask]", "mask = mask & (x[..., 0] > step)\n        x, picked = net(x, mask)"),
        ("hidden[mask]", "mask[0] = step > 1\n        x, picked = net(x, mask)"),
        ("hidden[mask]", "x, picked = net(x, x[..., 0] > 0)"),
        ("hidden[x[..., 0] > 0]", CALL),
        ("hidden[~mask]", CALL),
        ("hidden.masked_select(mask.unsqueeze(1))", CALL),
    ],
)
def test_masks_that_may_differ_are_searched_each_time(picked: str, call: str) -> None:
    before = PROGRAM.format(picked=picked, call=call)
    assert fixed(before)[0] == before
