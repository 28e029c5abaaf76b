"""Tables over the sides of pictures and grids, which functions are handed as numbers, and matrices that are only turned over."""
from __future__ import annotations

import pytest

from hostlint.scan import scan_text

LAYER = """\
import torch
from torch import nn


def relative(attn, q, {first}, {second}, table):
    rows = torch.arange({left}, device=q.device)[:, None] * 2.0
    rows = rows - torch.arange({right}, device=q.device)[None] * 0.5
    return attn + table[rows.long()]


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = nn.Conv2d(8, 8, 1)
        self.table = nn.Parameter(torch.zeros(8))

    def forward(self, x, size):
        x, size = self.sized(x, size)
        return relative(x, x, size[0], size[1], self.table)
"""


def told(first: str, second: str, left: str, right: str) -> list[int]:
    source = LAYER.replace("{first}", first).replace("{second}", second).replace("{left}", left).replace("{right}", right)
    findings, errors = scan_text(source, "layer.py")
    assert not errors
    return [finding.span.line for finding in findings if finding.code == "HL301"]


@pytest.mark.parametrize(
    ("first", "second", "left", "right"),
    [
        ("height: int", "width: int", "height", "width"),
        ("q_size: list[int]", "k_size: list[int]", "q_size[0]", "k_size[0]"),
        ("grid_size: Tuple[int, int]", "img_h: int", "grid_size[1]", "img_h"),
        ("H: int", "W: int", "H + 1", "W"),
    ],
)
def test_no_step_changes_the_sides_of_a_picture(first: str, second: str, left: str, right: str) -> None:
    assert told(first, second, left, right) == [6]


@pytest.mark.parametrize(
    ("first", "second", "left", "right"),
    [
        ("length: int", "total: int", "length", "total"),  # may grow
        ("cache_size: int", "width: int", "cache_size", "cache_size"),
        ("height", "width", "height", "width"),  # nothing says what they are
        ("height: torch.Tensor", "width: torch.Tensor", "height", "width"),
        ("step: int", "offset: int", "step", "offset"),
    ],
)
def test_what_may_grow_or_is_not_known_is_silent(first: str, second: str, left: str, right: str) -> None:
    assert told(first, second, left, right) == []


def test_a_matrix_that_is_turned_over_is_a_mask() -> None:
    source = """\
import torch
from torch import nn


class Attention(nn.Module):
    def forward(self, q, k):
        q = q / q.norm(dim=-1, keepdim=True)
        n = q.shape[2]
        mask = {mask}
        return torch.einsum("bhsd,bhkd->bhsk", q, q) * mask
"""
    def lines(mask: str) -> list[int]:
        return [finding.span.line for finding in scan_text(source.replace("{mask}", mask), "layer.py")[0] if finding.code == "HL301"]

    assert lines("~torch.eye(n, dtype=torch.bool, device=k.device)") == [9]
    assert lines("~torch.eye(3, dtype=torch.bool, device=k.device)") == []
    assert lines("~(k > 0)") == []


@pytest.mark.parametrize(
    ("loop", "lines"),
    [
        ("for height, width in grids.tolist():\n            x = relative(x, x, height, width, self.table)", []),
        ("for grid in grids.tolist():\n            x = relative(x, x, grid[0], grid[1], self.table)", []),
        ("height, width = self.sized(grids)\n        x = relative(x, x, height, width, self.table)", [6]),
    ],
)
def test_each_picture_of_a_batch_has_sides_of_its_own(loop: str, lines: list[int]) -> None:
    source = LAYER.replace("{first}", "height: int").replace("{second}", "width: int")
    source = source.replace("{left}", "height").replace("{right}", "width").replace(
        "        x, size = self.sized(x, size)\n        return relative(x, x, size[0], size[1], self.table)",
        f"        grids = size\n        {loop}\n        return x",
    )
    findings, errors = scan_text(source, "layer.py")
    assert not errors
    assert [finding.span.line for finding in findings if finding.code == "HL301"] == lines
