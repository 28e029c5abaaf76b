"""A function that is put in the place of a module's forward is one: hot, and its inputs are on the device."""
from __future__ import annotations

import pytest

from hostlint.scan import scan_text

PROGRAM = """\
import functools
import types
from functools import partial

import torch
import library.modeling as modeling
from library.modeling import Attention
{before}

def attention(self, hidden, mask: torch.Tensor = None, scale: float = 1.0):
    if mask.any():
        hidden = hidden * mask
    return hidden[: int(scale)], hidden.max().item()


def patch(model, blocks, pipe):
    {replaced}
"""
PLACES = [
    "modeling.Attention.forward = attention",
    "Attention.forward = attention",
    "Attention.forward = attention if blocks else None",
    "model.__class__.forward = attention",
    "setattr(Attention, 'forward', attention)",
    "model.forward = types.MethodType(attention, model)",
    "model.forward = attention.__get__(model, type(model))",
    "model.forward = partial(attention, model)",
    "mine = attention\n    Attention.forward = mine",
    "for block in blocks:\n        block.attn.forward = functools.partial(attention, block.attn)",
    "torch.nn.MultiheadAttention.forward = attention",
    "pipe.transformer.forward = types.MethodType(attention, pipe.transformer)",
]


def found(source: str) -> list[tuple[str, int, str]]:
    findings, errors = scan_text(source)
    assert not errors
    return [(one.code, one.span.line, one.heat.level.label) for one in findings if one.heat.level.label in ("call", "loop")]


@pytest.mark.parametrize("replaced", PLACES)
def test_the_function_is_hot_and_its_inputs_are_on_the_device(replaced: str) -> None:
    assert found(PROGRAM.format(before="", replaced=replaced)) == [("HL103", 11, "call"), ("HL101", 13, "call")]


@pytest.mark.parametrize(
    "replaced",
    [
        "model.reference = attention",
        "pipe.forward = types.MethodType(attention, pipe)",
        "Pool.forward = attention",
        "setattr(Attention, 'backward', attention)",
        "modeling.attention = attention",
    ],
)
def test_other_places_make_no_forward_of_it(replaced: str) -> None:
    assert found(PROGRAM.format(before="\nclass Pool:\n    pass\n", replaced=replaced)) == []


def test_a_function_inside_the_one_that_patches() -> None:
    source = """\
import torch


def make(module):
    def forward(self, hidden):
        return hidden.sum().item()
    return forward


def other(module):
    def forward(self, hidden):
        return hidden.sum().item()
    return forward


def patch(module):
    def inner(self, hidden):
        return hidden.sum().item()
    module.forward = inner
    module.block.forward = make(module)
"""
    assert found(source) == [("HL101", 6, "call"), ("HL101", 18, "call")]


def test_what_the_class_itself_is_given() -> None:
    source = """\
import types
import torch


def forward(self, hidden):
    return hidden.sum().item()


def other(self, hidden):
    return hidden.sum().item()


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.forward = types.MethodType(forward, self)


class Queue:
    def __init__(self):
        self.forward = types.MethodType(other, self)
"""
    assert found(source) == [("HL101", 6, "call")]


def test_the_first_parameter_is_the_module() -> None:
    source = """\
import torch
from library import Attention


def attention(module, hidden):
    return module.item() + hidden.sum().item()


Attention.forward = attention
"""
    assert found(source) == [("HL101", 6, "call")]
