"""Work that goes before its loop: what moves, under which name, and what stays where it may change, be skipped or be written to."""
from __future__ import annotations

import pytest

from hostlint.fix.once import fix_text, fixed_text
from hostlint.model import Applicability

LOOP = """\
import torch

net = torch.nn.Linear(4, 4).to("cuda")


def steps(x, text, count: int, flag: bool):
    mask = text.to("cuda")
    for step in range(count):
        {}
        x = net(x * keep)
    return x
"""


def body(inside: str, review: bool = True) -> tuple[str, str]:
    """What is before the loop, and in it, after the fixes of HL302."""
    text = fixed_text(LOOP.format(inside.replace("\n", "\n        ")), "step.py", frozenset({"HL302"}), review)
    before, _, after = text.partition("    for step in range(count):\n")
    lines = after.partition("        x = net(x * keep)\n")[0].splitlines()
    hoisted = before.partition('text.to("cuda")\n')[2].splitlines()
    return "\n".join(line.removeprefix("    ") for line in hoisted), "\n".join(line.removeprefix("        ") for line in lines)


MOVED = [
    ("keep = mask.float()\ny = step", "keep = mask.float()", "y = step"),
    ("keep = mask.float()  # once\ny = step", "keep = mask.float()  # once", "y = step"),
    ("y = step\n# what stays\nkeep = mask.float()", "# what stays\nkeep = mask.float()", "y = step"),
    ("keep = torch.cat(\n    [mask, mask],\n)", "keep = torch.cat(\n    [mask, mask],\n)", ""),
    ("keep = mask.float() * step", "mask_float = mask.float()", "keep = mask_float * step"),
    ("keep = mask.to(torch.float16) + x", "mask_float16 = mask.to(torch.float16)", "keep = mask_float16 + x"),
    ("if x is None:\n    continue\nkeep = mask.float()", "keep = mask.float()", "if x is None:\n    continue"),
    ("keep: torch.Tensor = mask.float()", "keep: torch.Tensor = mask.float()", ""),
]
STAYS = {
    "conditional": "keep = 1\nif flag:\n    keep = mask.float()",
    "in one branch": "keep = mask.float() if flag else 1",
    "perhaps not evaluated": "keep = flag and mask.float()",
    "in a try": "try:\n    keep = mask.float()\nexcept ValueError:\n    break",
    "under a context": "with torch.autocast('cuda'):\n    keep = torch.matmul(mask, mask)",
    "in a nested function": "def keep():\n    return mask.float()",
    "after a test of the operand": "if mask is None:\n    continue\nkeep = mask.float()",
    "written by its name": "mask[0] = step\nkeep = mask.float()",
    "written by an alias": "row = mask[0]\nrow[step] = 1\nkeep = mask.float()",
    "written through a view": "mask.view(-1).add_(1)\nkeep = mask.float()",
    "written with out": "torch.exp(x, out=mask)\nkeep = mask.float()",
    "bound anew": "keep = mask.float()\nmask = mask + 1",
    "bound by a walrus": "keep = mask.float()\nif (mask := x) is None:\n    break",
    "deleted": "keep = mask.float()\ndel mask",
}


@pytest.mark.parametrize(("inside", "before", "after"), MOVED, ids=[one for one, *_ in MOVED])
def test_moves(inside: str, before: str, after: str) -> None:
    assert body(inside) == (before, after)
    assert body(inside, review=False) == ("", inside)


@pytest.mark.parametrize("inside", STAYS.values(), ids=STAYS)
def test_stays(inside: str) -> None:
    assert body(inside) == ("", inside)


KEPT_NAME = {
    "read before the loop": ("keep = 2", "keep = mask.float()", ""),
    "read after the loop": ("", "keep = mask.float()", "x = x * keep"),
    "read earlier in the pass": ("", "if step:\n    x = x + keep\nkeep = mask.float()", ""),
    "written to": ("", "keep = mask.float()\nkeep[step] = 0", ""),
    "added to": ("", "keep = mask.float()\nkeep += step", ""),
    "written by another name": ("", "keep = mask.float()\nother = keep\nother[step] = 0", ""),
    "read in a nested function": ("", "keep = mask.float()\ny = lambda: keep", ""),
}


@pytest.mark.parametrize(("before", "inside", "after"), KEPT_NAME.values(), ids=KEPT_NAME)
def test_a_name_that_others_see_stays(before: str, inside: str, after: str) -> None:
    program = LOOP.format(inside.replace("\n", "\n        "))
    program = program.replace("    for step", f"    {before}\n    for step").replace("    return x", f"    {after}\n    return x")
    text = fixed_text(program, "step.py", frozenset({"HL302"}), review=True)
    assert "    keep = mask.float()\n    for step" not in text
    assert "        keep = mask" in text


def test_a_string_of_several_lines_is_not_moved() -> None:
    program = LOOP.format('keep = torch.einsum("""ij\n  ->ij""", mask)')
    assert fixed_text(program, "step.py", frozenset({"HL302"}), review=True) == program


def test_a_chain_of_work_moves_link_by_link() -> None:
    assert body("half = mask.half()\nkeep = half.exp()\ny = step") == ("half = mask.half()\nkeep = half.exp()", "y = step")


EXACT = """\
import torch

net = torch.nn.Linear(4, 4).to("cuda")


def steps(x, count: int):
    ahead = torch.arange(4, device="cuda") > 1
    {}
    for step in range(count):
        held = ahead.{}()
        x = net(torch.where(ahead, x, held)) + step{}
    return x
"""


def applicability(program: str) -> Applicability | None:
    found = [one.fix for one in fix_text(program, "step.py", frozenset({"HL302"}), review=True).mended if one.fix is not None]
    return found[0].applicability if found else None


def test_only_a_cast_that_nothing_else_sees_is_exact() -> None:
    assert applicability(EXACT.format("", "long", "")) is Applicability.EXACT
    assert applicability(EXACT.format("", "float", "")) is Applicability.REVIEW  # a gradient may run through it
    assert applicability(EXACT.format("ahead = x.cuda().bool()", "long", "")) is Applicability.REVIEW
    assert applicability(EXACT.format("net.look(ahead)", "long", "")) is Applicability.REVIEW
    assert applicability(EXACT.format("view = ahead[0]; net.look(view)", "long", "")) is Applicability.REVIEW
    assert applicability(EXACT.format("", "long", "; net.seen = held")) is not Applicability.EXACT
    assert applicability(EXACT.format("", "long", "; net(held)")) is Applicability.REVIEW
    assert applicability(EXACT.format("peek = lambda: ahead", "long", "")) is Applicability.REVIEW
