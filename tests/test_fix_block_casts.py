"""A cast that all blocks repeat goes before their loop, where the blocks do nothing else with the parameter."""
from __future__ import annotations

import pytest

from hostlint.fix.once import fix_text, fixed_text

MODEL = """\
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.mix = nn.Linear(width, width)

    def forward(self, x, mask):
        {}
        return self.mix(x) * keep


class Stack(nn.Module):
    def __init__(self, width: int, depth: int):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))

    def forward(self, x, mask):
        for block in self.blocks:
            {}
        return x
"""
CALL = "x = block(x, mask)"
CAST = "keep = mask.bool()"


def program(inside: str, call: str = CALL) -> str:
    return MODEL.format(inside.replace("\n", "\n        "), call.replace("\n", "\n            "))


def fixed(inside: str, call: str = CALL) -> str:
    return fixed_text(program(inside, call), "model.py", frozenset({"HL303"}), review=True)


CASTS = [
    (CAST, CALL, "mask_bool = mask.bool()", "x = block(x, mask_bool)"),
    ("keep = mask[:, None].float()", CALL, "mask_float = mask.float()", "x = block(x, mask_float)"),
    ("keep = mask.to(torch.float32)", CALL, "mask_float32 = mask.to(torch.float32)", "x = block(x, mask_float32)"),
    (CAST, "x = block(x, mask=mask)", "mask_bool = mask.bool()", "x = block(x, mask=mask_bool)"),
    ("mask = mask.bool()\nkeep = mask", CALL, "mask_bool = mask.bool()", "x = block(x, mask_bool)"),
    ("keep = 1 if mask is None else mask.bool()", CALL, "mask_bool = mask.bool() if mask is not None else None", "x = block(x, mask_bool)"),
]


@pytest.mark.parametrize(("inside", "call", "before", "after"), CASTS, ids=[f"{one[0]}: {one[1]}" for one in CASTS])
def test_a_cast_goes_before_the_loop(inside: str, call: str, before: str, after: str) -> None:
    wanted = program(inside, after).replace("        for block", f"        {before}\n        for block")
    assert fixed(inside, call) == wanted
    assert fixed_text(program(inside, call), "model.py", frozenset({"HL303"})) == program(inside, call)


LEFT = {
    "the block needs it as it is, too": (f"{CAST}\nx = x + mask.sum()", CALL),
    "the loop needs it as it is, too": (CAST, f"{CALL}\nx = x + mask.sum()"),
    "a dtype of the block's": ("dtype = torch.float32\nkeep = mask.to(dtype)", CALL),
    "handed on by a list": (CAST, "x = block(*[x, mask])"),
    "a part": (CAST, "x = block(x, mask[0])"),
}


@pytest.mark.parametrize(("inside", "call"), LEFT.values(), ids=LEFT)
def test_what_is_left(inside: str, call: str) -> None:
    assert fixed(inside, call) == program(inside, call)


def test_the_message_says_what_it_rests_on() -> None:
    result = fix_text(program(CAST), "model.py", frozenset({"HL303"}), review=True)
    assert [one.fix.message for one in result.mended if one.fix is not None] == [
        "cast once before the loop over the blocks, where all of them cast `mask` in the same way and none writes into it"
    ]
