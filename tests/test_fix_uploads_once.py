"""Uploads of what stays the same are made once: before the loop, by the first pass that asks, or for a table that an object holds."""
from __future__ import annotations

import pytest

from hostlint.fix.once import fix_text
from hostlint.model import Applicability

UPLOADS = frozenset({"HL202", "HL203"})
PROGRAM = """\
import torch


class Ramp:
    def __init__(self, width: int):
        self.ramp = torch.linspace(0, 1, width)
        self.rows = {{"in": torch.rand(8, width), "out": torch.rand(8, width)}}


def sample(net, x, held: Ramp, width: int, steps: int, name: str):
    x = x.cuda()
    ramp = Ramp(width).ramp
    maybe = Ramp(width).ramp if width > 3 else None
    for step in range(steps):
        x = net(x)
        {body}
    return x


def main(net, x, steps: int):
    return sample(net, x, Ramp(4), 4, steps, "in")
"""


def program(body: str) -> str:
    return PROGRAM.format(body=body.replace("\n", "\n        "))


def fixed(text: str) -> tuple[str, set[Applicability]]:
    result = fix_text(text, "sample.py", UPLOADS, review=True)
    return result.files[0].text if result.files else text, {one.fix.applicability for one in result.mended if one.fix is not None}


LOOPS = [
    ("x = net(x * ramp.to('cuda'))", "ramp_cuda = ramp.to('cuda')", "x = net(x * ramp_cuda)"),
    ("x = net(x, ramp.to(x.device))", "", "ramp = ramp.to(x.device)\nx = net(x, ramp)"),
    (
        "if maybe is not None:\n    x = net(x, maybe.to('cuda'))", "",
        "if maybe is not None:\n    maybe = maybe.to('cuda')\n    x = net(x, maybe)",
    ),
    (
        "assert ramp.shape[0] == width and ramp.size(0)\nx = net(x, ramp.to(x.device, torch.bfloat16))", "",
        "assert ramp.shape[0] == width and ramp.size(0)\nramp = ramp.to(x.device, torch.bfloat16)\nx = net(x, ramp)",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("before", "first", "after"), LOOPS, ids=[one[0].partition("\n")[0] for one in LOOPS])
def test_one_pass_moves_it(before: str, first: str, after: str) -> None:
    text, kinds = fixed(program(before))
    wanted = program(after)
    assert text == (wanted.replace("    for step", f"    {first}\n    for step") if first else wanted)
    assert kinds == {Applicability.REVIEW}


HELD = [
    ("x = net(x, held.ramp[step].to('cuda'))", "x = net(x, on_device(held.ramp, 'cuda')[step])"),
    ("x = net(x, held.ramp.to(device=x.device, dtype=x.dtype))", "x = net(x, on_device(held.ramp, x.device, x.dtype))"),
    ("x = net(x, held.rows['in'][step].to(x.device, torch.half))", "x = net(x, on_device(held.rows['in'], x.device, torch.half)[step])"),
    (
        "table = held.rows['out']\nx = net(x, table[step].to(device=x.device, dtype=x.dtype))",
        "table = held.rows['out']\nx = net(x, on_device(table, x.device, x.dtype)[step])",
    ),
]


@pytest.mark.parametrize(("before", "after"), HELD, ids=[one[1].partition("\n")[0] for one in HELD])
def test_a_table_that_an_object_holds_is_moved_once(before: str, after: str) -> None:
    text, kinds = fixed(program(before))
    assert text.partition("class Ramp")[2] == program(after).partition("class Ramp")[2]
    assert kinds == {Applicability.REVIEW}


LEFT = [
    "x = net(x, ramp.to(x.device), ramp)",  # the host's is wanted too
    "x = net(x, ramp.to(x.device))\nramp = ramp * 2",
    "x = net(x, ramp.to(x.device))\nramp[0] = step",
    "moved = ramp.to(x.device)\nmoved += x\nx = net(moved)",
    "x = net(x, ramp.to(x.device, copy=True))",
    "x = net(x, ramp.to(x.device, x.dtype))",  # the second pass would cast to another dtype
    "x = net(lambda: ramp.to(x.device))",
    "held.ramp = held.ramp * 2\nx = net(x, held.ramp.to('cuda'))",
]


@pytest.mark.parametrize("body", LEFT)
def test_what_may_be_another_tensor_is_moved_each_time(body: str) -> None:
    assert fixed(program(body))[0] == program(body)


PINNED = """\
import torch


def feed(model, rows, device: torch.device):
    for row in rows:
        grid = torch.zeros(len(row), 32, pin_memory=True)
        {write}
        moved = {move}
        model(moved)
"""


def test_pinned_memory_is_not_waited_for() -> None:
    before = PINNED.format(write="model(row)", move="grid.to(device)")
    after = before.replace("grid.to(device)", "grid.to(device, non_blocking=True)")
    assert fixed(before) == (after, {Applicability.REVIEW})


@pytest.mark.parametrize(
    ("write", "move"),
    [("grid[0] = 1", "grid.to(device)"), ("grid.fill_(2)", "grid.to(device)"), ("model(row)", "grid.to(device, torch.half)")],
)
def test_pinned_memory_that_is_written_to_is_waited_for(write: str, move: str) -> None:
    before = PINNED.format(write=write, move=move)
    assert "non_blocking" not in fixed(before)[0]
