"""A name that a number stands in for is filled on the device, for review; what may as well be a list is left."""
from __future__ import annotations

import pytest

from hostlint.fix.once import fix_text

PROGRAM = """\
import torch


def decode(x, config, given=None, scale=0.5, *, shift: object = -1):
    {bound}
    return x * torch.tensor({name}, device=x.device, dtype=x.dtype).view(1, 1)


def sample(net, x, config, steps: int):
    x = x.cuda()
    for _ in range(steps):
        x = decode(net(x), config)
    return x
"""
NUMBERS = [
    ("factor = config.first or config.get('factor', 2)", "factor"),
    ("factor = config.factor or 0.13", "factor"),
    ("factor = (config.a if config else config.b) or getattr(config, 'factor', 0.13)", "factor"),
    ("factor = config.factor if config else -1.0", "factor"),
    ("pass", "scale"),
    ("pass", "shift"),
]
OTHERS = [
    ("factor = config.factor", "factor"),
    ("factor = config.first or getattr(config, 'factor', None)", "factor"),
    ("factor = config.first or getattr(config, 'factor', [0.5, 0.5])", "factor"),
    ("factor = config.factor or True", "factor"),
    ("factor = 0.5\n    factor = config.factor", "factor"),
    ("scale = config.factors", "scale"),
    ("pass", "given"),
    ("factor = 0.5 and config.factor", "factor"),
]


@pytest.mark.parametrize(("bound", "name"), NUMBERS)
def test_one_number_is_filled(bound: str, name: str) -> None:
    before = PROGRAM.format(bound=bound, name=name)
    result = fix_text(before, "step.py", frozenset({"HL201"}), review=True)
    assert [file.text for file in result.files] == [before.replace(f"torch.tensor({name}", f"torch.full((), {name}")]
    assert [f"`{name}` is a Python number" in one.fix.message for one in result.mended if one.fix is not None] == [True]
    assert not fix_text(before, "step.py", frozenset({"HL201"})).files


@pytest.mark.parametrize(("bound", "name"), OTHERS)
def test_what_may_be_a_list_is_left(bound: str, name: str) -> None:
    result = fix_text(PROGRAM.format(bound=bound, name=name), "step.py", frozenset({"HL201"}), review=True)
    assert not result.files
    assert [one.finding.code for one in result.left] == ["HL201"]
