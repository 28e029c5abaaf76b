"""Numbers that a step loop's function reads once and hands in, instead of the function that it calls at every step."""
from __future__ import annotations

import pytest

from hostlint.fix.once import fix_text

PROGRAM = """\
{future}import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, mask: torch.Tensor{more}):
        {inside}
        return self.head(x)


def denoise(net: Net, x, mask, other, steps):
    net = net.cuda()
{before}    for step in range(steps):
        {call}
    return x
"""
LISTED = "mask_sums = mask.flatten(1).sum(1).tolist()"
FALLBACK = f"if mask_sums is None:\n    {LISTED}"
USE = "\nx = x * len(mask_sums)"


def program(inside: str, call: str = "x = net(x, mask)", before: str = "", more: str = "", future: str = "") -> str:
    lines = {"inside": inside.replace("\n", "\n        "), "call": call.replace("\n", "\n        ")}
    return PROGRAM.format(**lines, before="".join(f"    {line}\n" for line in before.splitlines()), more=more, future=future)


def fixed(text: str) -> tuple[str, list[str]]:
    """The program after all fixes of reads, and the rules whose findings are left."""
    result = fix_text(text, "net.py", frozenset({"HL101", "HL102", "HL105"}), review=True)
    return result.files[0].text if result.files else text, [one.finding.code for one in result.left]


ROWS = "for i in range(x.shape[0]):\n    x = x[:, : int(mask[i].sum().item())]"
CASES = {
    "a list": (program(LISTED + USE), program(FALLBACK + USE, "x = net(x, mask, mask_sums=mask_sums)", LISTED, ", mask_sums=None")),
    "rows of a loop": (
        program(ROWS),
        program(f"{FALLBACK}\n{ROWS.replace('mask[i].sum().item()', 'mask_sums[i]')}", "x = net(x, mask, mask_sums=mask_sums)", LISTED,
                ", mask_sums=None"),
    ),
    "rows that a loop walks over": (
        program("for row in mask:\n    x = x[:, : int(row.sum())]"),
        program(f"{FALLBACK}\nfor row, row_sum in zip(mask, mask_sums):\n    x = x[:, : int(row_sum)]",
                "x = net(x, mask, mask_sums=mask_sums)", LISTED, ", mask_sums=None"),
    ),
    "rows of a comprehension": (
        program("x = torch.cat([x[:, : int(row.sum())] for row in mask], 1)"),
        program(f"{FALLBACK}\nx = torch.cat([x[:, : int(row_sum)] for row_sum in mask_sums], 1)",
                "x = net(x, mask, mask_sums=mask_sums)", LISTED, ", mask_sums=None"),
    ),
    "two calls": (
        program(LISTED + USE, "x = net(x, mask)\nx = x + net(x, mask=mask)"),
        program(FALLBACK + USE, "x = net(x, mask, mask_sums=mask_sums)\nx = x + net(x, mask=mask, mask_sums=mask_sums)", LISTED,
                ", mask_sums=None"),
    ),
    "two masks": (
        program(LISTED + USE, "x = net(x, mask)\nx = x + net(x, other)"),
        program(FALLBACK + USE, "x = net(x, mask, mask_sums=mask_sums)\nx = x + net(x, other, mask_sums=other_sums)",
                f"{LISTED}\nother_sums = other.flatten(1).sum(1).tolist()", ", mask_sums=None"),
    ),
    "a number beside it": (
        program("lengths = (mask != pad).sum(1).tolist()\nx = x * len(lengths)", "x = net(x, mask, 7)", more=", pad: int = 0"),
        program("if lengths is None:\n    lengths = (mask != pad).sum(1).tolist()\nx = x * len(lengths)",
                "x = net(x, mask, 7, lengths=lengths)", "lengths = (mask != 7).sum(1).tolist()", ", pad: int = 0, lengths=None"),
    ),
    "arguments on lines of their own": (
        program(LISTED + USE, "x = net(\n    x,\n    mask,\n)"),
        program(FALLBACK + USE, "x = net(\n    x,\n    mask,\n    mask_sums=mask_sums,\n)", LISTED, ", mask_sums=None"),
    ),
    "types that nobody evaluates": (
        program(LISTED + USE, future="from __future__ import annotations\n\n"),
        program(FALLBACK + USE, "x = net(x, mask, mask_sums=mask_sums)", LISTED, ", mask_sums: list[int] | None = None",
                "from __future__ import annotations\n\n"),
    ),
    "what may be left out": (
        program(LISTED + USE, more=" | None = None"),
        program(FALLBACK + USE, "x = net(x, mask, mask_sums=mask_sums)", f"{LISTED} if mask is not None else None",
                " | None = None, mask_sums=None"),
    ),
    "a name that the caller has": (
        program(LISTED + USE, before="mask_sums = steps"),
        program(FALLBACK + USE, "x = net(x, mask, mask_sums=mask_sums_2)", f"mask_sums = steps\nmask_sums_2 = {LISTED[12:]}",
                ", mask_sums=None"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "wanted"), CASES.values(), ids=CASES)
def test_the_caller_hands_the_numbers_in(text: str, wanted: str) -> None:
    assert fixed(text) == (wanted, [])


CHAIN = """\
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, mask: torch.Tensor{first}):
        {read}return self.head(x) * len(widths)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(3))

    def forward(self, x: torch.Tensor, mask: torch.Tensor{second}):
        {between}for block in self.blocks:
            x = block(x, mask{third})
        return x


def denoise(net: Net, x, mask, steps):
    net = net.cuda()
    {before}for step in range(steps):
        x = net(x, mask{fourth})
    return x
"""


def test_numbers_go_up_the_chain_of_calls() -> None:
    plain = dict.fromkeys(("first", "second", "third", "fourth", "between", "before"), "")
    text = CHAIN.format(**plain, read="widths = mask.sum(1).tolist()\n        ")
    read = "if widths is None:\n            widths = mask.sum(1).tolist()\n        "
    wanted = CHAIN.format(first=", widths=None", read=read, second=", widths=None", between=read, third=", widths=widths",
                          before="widths = mask.sum(1).tolist()\n    ", fourth=", widths=widths")  # fmt: skip
    assert fixed(text) == (wanted, [])


LEFT = {
    "another one at every step": program(LISTED + USE, "mask = mask & (x > 0)\nx = net(x, mask)"),
    "written to": program(LISTED + USE, "mask[step] = 0\nx = net(x, mask)"),
    "worked out for the call": program(LISTED + USE, "x = net(x, mask > step)"),
    "a call whose arguments are not plain": program(LISTED + USE, "x = net(*(x, mask))"),
    "a call that spreads its first arguments": program(LISTED + USE, "x = net(*x, mask)"),
    "a call that hands on": program(LISTED + USE, "x = torch.utils.checkpoint.checkpoint(net, x, mask)"),
    "any names": program(LISTED + USE, more=", **rest"),
    "written to before it is read": program("mask.mul_(2)\n" + LISTED + USE),
    "bound anew": program("mask = mask > 0\n" + LISTED + USE),
    "the name has other uses": program(LISTED + USE + "\nmask_sums = []"),
    "more than parameters": program("mask_sums = (mask * self.head.weight).sum(1).tolist()" + USE),
    "a local name": program("scale = x.mean()\nmask_sums = (mask * scale).sum(1).tolist()" + USE),
    "a key": program("key = tuple(mask.tolist())\nx = x * len(key)"),
    "its own argument": program("ends = x.argmax(1).tolist()\nx = x[: len(ends)]"),
}


@pytest.mark.parametrize("text", LEFT.values(), ids=LEFT)
def test_what_only_the_step_knows_is_left(text: str) -> None:
    assert fixed(text)[0] == text


def test_a_function_that_nobody_calls_in_a_loop_is_left() -> None:
    text = program(LISTED + USE).partition("\n\ndef denoise")[0] + "\n"
    assert fixed(text) == (text, ["HL105"])


def test_one_read_for_all_rows_is_better_than_one_a_row_and_said_to_be_left() -> None:
    text = program(ROWS).partition("\n\ndef denoise")[0] + "\n"
    wanted = program(f"{LISTED}\n{ROWS.replace('mask[i].sum().item()', 'mask_sums[i]')}").partition("\n\ndef denoise")[0] + "\n"
    assert fixed(text) == (wanted, ["HL105"])
