"""A number that is read once in the place of twice keeps the bits, whichever way a pass goes."""
from __future__ import annotations

import pytest

from hostlint.fix.once import fixed_text
from hostlint.runtime_checks.bits import difference, trial

PROGRAM = """\
import torch

net = torch.nn.Identity().cuda()


def talk(x, end: int, image: int, limit: int):
    told = []
    while limit > 0:
        limit -= 1
        token = torch.argmax(net(x), dim=-1)
        {body}
    return x, told

"""
BODIES = [
    "if token.item() == end:\n    break\nif token.item() == image:\n    x = x + 1",
    "if token.item() > 0 and token.item() < limit:\n    x = x.flip(0)",
    "if int(token) == end or limit == 1:\n    told.append(x)\n    continue\nx = x * int(token)",
    "number = token.item()\ntold = [*told, number]\nif token.item() == end:\n    break\nx = x.roll(1)",
    "if token.item() == end:\n    token = net(x)\n    break\nx = x.roll(1) * token.item()",
]


@pytest.mark.parametrize("body", BODIES)
def test_the_bits_stay(body: str) -> None:
    before = PROGRAM.format(body=body.replace("\n", "\n        "))
    after = fixed_text(before, "talk.py", frozenset({"HL101", "HL102"}), review=True)
    assert after != before
    for x in ("torch.tensor([0.0, 5.0, 1.0])", "torch.tensor([0.0, -1.0, -0.0])", "torch.tensor([float('nan'), 1.0, 7.0])"):
        for end in (0, 1, 2, 7):
            call = f"talk({x}, {end}, 1, 4)"
            assert difference(trial(before, call), trial(after, call)) == "", call
