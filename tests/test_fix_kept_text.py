"""How constants that are kept are written: on one line where it has room, with an argument a line, or not at all."""
from __future__ import annotations

import ast

import libcst as cst
import pytest

from hostlint.facts.fact import Fact
from hostlint.facts.kinds import FactKind
from hostlint.fix.kept_text import assumed_defaults
from hostlint.fix.loops import changing_names
from hostlint.fix.once import fix_text, fixed_text
from hostlint.fix.outline import Outline
from hostlint.fix.place import Place
from hostlint.model import Confidence, Heat, HeatLevel

HEAD = """\
import torch
from torch import nn


class Block(nn.Module):
    def forward(self, x, scale: float, scale_of_positions_between_tokens: float):
"""
TAIL = """\
        return x + places.cos()


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(20))

    def forward(self, x):
        for block in self.blocks:
            x = block(x, 0.5, 2.0)
        return x
"""
MADE = "torch.arange(x.shape[1], device=x.device, dtype=torch.float32)"
LAMBDA = "lambda size, device: torch.arange(size, device=device, dtype=torch.float32)"
PLAIN = "torch.arange(x.shape[1], device=x.device)"
SHORT = "kept(lambda size, device: torch.arange(size, device=device), x.shape[1], x.device)"
LONG = "torch.linspace(start=0.0, end=1.0, steps=x.shape[1], device=x.device, dtype=torch.float32, requires_grad=False)"
TWICE = "    / scale_of_positions_between_tokens / scale_of_positions_between_tokens"
COMMENT = "comments hang over the end of their line, which is what they are for"
KEPT = [
    (f"places = {PLAIN} / scale", f"places = {SHORT} / scale"),
    (f"places = {PLAIN} / scale  # {COMMENT}", f"places = {SHORT} / scale  # {COMMENT}"),
    (f"places = {MADE} / scale_of_positions_between_tokens",
     f"places = kept(\n    {LAMBDA},\n    x.shape[1], x.device,\n) / scale_of_positions_between_tokens"),
    (f"places = (\n    {MADE}\n{TWICE}\n)",
     f"places = (\n    kept({LAMBDA}, x.shape[1], x.device)\n{TWICE}\n)"),
    (f"places = (\n    {MADE} / scale_of_positions_between_tokens\n)",
     f"places = (\n    kept(\n        {LAMBDA},\n        x.shape[1], x.device,\n    ) / scale_of_positions_between_tokens\n)"),
    (f"places = {LONG} * scale", f"places = {LONG} * scale"),
    (f"places = scale_of_positions_between_tokens * {MADE}", f"places = scale_of_positions_between_tokens * {MADE}"),
]  # fmt: skip


def indented(body: str) -> str:
    return "".join(f"        {line}\n" for line in body.splitlines())


@pytest.mark.parametrize(("before", "after"), KEPT)
def test_a_kept_constant_is_easy_to_read(before: str, after: str) -> None:
    text = fixed_text(HEAD + indented(before) + TAIL, "rotary.py", {"HL301"}, review=True)
    assert text.endswith(TAIL)
    body = text.removesuffix(TAIL).partition("tokens: float):\n")[2]
    assert body == indented(after)
    assert before == after or max(len(line.partition("  #")[0]) for line in body.splitlines()) <= 120


DEFAULTS = [
    ("torch.arange(n, device=d)", ""),
    ("torch.arange(n)", " and the default device stays"),
    ("torch.arange(0.5, n, device=d)", " and the default dtype stays"),
    ("torch.exp(torch.linspace(0, 1, n))", " and the default device and dtype stay"),
    ("torch.zeros(n, dtype=torch.float32, device=d)", ""),
    ("torch.cat([torch.zeros(n, dtype=t), torch.arange(n, device=d)])", " and the default device stays"),
    ("torch.tensor([0, -1, 2], device=d)", ""),
    ("torch.tensor([0, -1.0], device=d)", " and the default dtype stays"),
    ("torch.tensor(config.means).view(1, -1).to(d)", " and the default dtype stays"),
    ("torch.tensor(config.means, dtype=torch.float32, device=d)", ""),
]


@pytest.mark.parametrize(("source", "words"), DEFAULTS)
def test_what_is_not_in_the_key_is_assumed(source: str, words: str) -> None:
    assert assumed_defaults(ast.parse(source, mode="eval").body) == words


def test_the_message_says_it() -> None:
    body = indented("places = torch.linspace(0, 1, x.shape[1], device=x.device)")
    [mended] = fix_text(HEAD + body + TAIL, "rotary.py", {"HL301"}, review=True).mended
    assert mended.fix is not None
    assert mended.fix.message.endswith("that all calls share and the default dtype stays")


def test_constants_that_are_told_together_are_kept_together() -> None:
    """What is left of a finding would be too little to be told again."""
    body = indented(
        "rows = torch.arange(x.shape[1], device=x.device)\n"
        "cols = torch.arange(x.shape[2], device=x.device)\n"
        "places = torch.stack([rows * 1.0, cols * 1.0, torch.outer(rows, cols)])"
    )
    result = fix_text(HEAD + body + TAIL, "rotary.py", {"HL301"}, review=True)
    assert len(result.mended) == 1
    text = result.files[0].text
    assert "rows = kept(lambda size, device: torch.arange(size, device=device), x.shape[1], x.device)\n" in text
    assert "cols = kept(lambda size, device: torch.arange(size, device=device), x.shape[2], x.device)\n" in text
    assert "torch.stack([rows * 1.0, cols * 1.0, torch.outer(rows, cols)])" in text
    assert text.count("def kept(") == 1


CLOSURES = """\
import torch

SIZE, WINDOW = 128, 64
CONFIG = object()


def widen(factor):
    global WINDOW
    WINDOW *= factor


class Block(torch.nn.Module):
    def forward(self, x, width: int):
        def places():
            return {made}

        return x + places() + CONFIG.shift


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block() for _ in range(20))

    def forward(self, x):
        for block in self.blocks:
            x = block(x, x.shape[1])
        return x
"""
KEYS = [
    ("torch.arange(x.shape[1], device=x.device)", "kept(lambda size, device: torch.arange(size, device=device), x.shape[1], x.device)"),
    ("torch.arange(SIZE * x.shape[1], device=x.device)",
     "kept(lambda size, device: torch.arange(SIZE * size, device=device), x.shape[1], x.device)"),
]  # fmt: skip


@pytest.mark.parametrize(("made", "kept"), KEYS)
def test_whatever_may_change_is_a_key(made: str, kept: str) -> None:
    """Names of the functions around, globals that a function binds anew, what an object of the module holds."""
    text = fixed_text(CLOSURES.replace("{made}", made), "block.py", {"HL301"}, review=True)
    assert f"            return {kept}\n" in text


def test_names_that_mean_the_same_in_every_call_are_no_keys() -> None:
    text = CLOSURES.replace("{made}", "torch.arange(SIZE + WINDOW + CONFIG.first + width + LATER.size, device=x.device).view(torch.int32)")
    outline = Outline(text)
    node = next(one for one in ast.walk(outline.tree) if isinstance(one, ast.Return) and "LATER" in ast.unparse(one))
    span = outline.span(node)
    fact = Fact(FactKind.REBUILT_CONSTANT, "block.py", "", span, (1, 1), "", "", "", Confidence.LIKELY, Heat(HeatLevel.CALL), "")
    place = Place(fact, cst.Name("x"), outline, None)  # type: ignore[arg-type]  # no value is asked for
    assert changing_names(place, node) == {"WINDOW", "CONFIG", "width", "LATER", "x"}
