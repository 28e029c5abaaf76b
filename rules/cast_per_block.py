"""The same tensor is cast in every block, though the loop over the blocks hands each block the same object.

## Why it costs
A cast that changes the type reads the tensor, writes a new one and launches a kernel. With twenty to sixty blocks and two branches of
guidance that is a hundred launches a step for one result; a model of small kernels is bound by them. A mask that comes from the tokenizer
as integers and is made boolean in each attention, and a time embedding that is made float32 in each block, are the usual ones. The finding
is a note: measure first.

## Instead
Cast once in the forward that loops over the blocks, and hand that to the blocks. The line in the block may stay: a cast to the type
that a tensor has already returns the tensor itself and launches nothing. The bits are the same.

Where blocks are offloaded or sharded, cast where the tensor is made, so that each device casts once.

`hostlint fix` casts before the loop and hands that to the blocks, where they stand in the same file, are called in the loop itself and do
nothing else with the parameter; the cast in the block stays. For review: other kinds of blocks in the same loop may need it as it was.

## Not flagged
Casts of what changes from block to block (the activations); `x.to(y.dtype)` of anything but a mask, which is most often free; parameters
for which some call passes another object, or whose callers the scan does not see; a mask of unknown type that such a block only makes
boolean, since it may be that already; casts that run once a request.

## Evidence
By the call graph: every call of the function passes what the loop over the blocks got from outside. The cast does not wait for the
device; it costs one launch and the tensor's bytes each time.

## How to confirm
`hostlint.runtime_checks.RecordOps().casts()` counts the casts of one forward.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.fix.block_casts import cast_once
from hostlint.model import Applicability, Severity
from hostlint.rule import Example, Problem, Rule
from hostlint.wording import amount, when, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    same = f"`{whole(node)}` casts the same tensor in every block{amount(fact)}, {when(fact)}: {fact.evidence}"
    return Problem(f"{same}; cast `{fact.detail or fact.subject}` once before that loop and hand it down, then the cast here is free")


RULE = Rule(
    code="HL303",
    name="cast-per-block",
    summary="a tensor that all blocks share is cast in each of them",
    kinds=(FactKind.CAST_PER_BLOCK,),
    check=check,
    fix=cast_once,
    severity=Severity.NOTE,
    examples=(
        Example(
            bad="""\
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.mix = nn.Linear(width, width)

    def forward(self, x, mask):
        keep = mask.bool()  # expect
        return torch.where(keep, self.mix(x.float()), x.float())


class Stack(nn.Module):
    def __init__(self, width: int, depth: int):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))

    def forward(self, x, mask):
        for block in self.blocks:
            x = block(x, mask)
        return x
""",
            good="""\
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.mix = nn.Linear(width, width)

    def forward(self, x, mask):
        keep = mask.bool()
        return torch.where(keep, self.mix(x.float()), x.float())


class Stack(nn.Module):
    def __init__(self, width: int, depth: int):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))

    def forward(self, x, mask):
        mask_bool = mask.bool()
        for block in self.blocks:
            x = block(x, mask_bool)
        return x
""",
            fix=Applicability.REVIEW,
        ),
        Example(
            bad="""\
import torch
from torch import nn


class Modulated(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(2, width))

    def forward(self, x, time, own):
        shift, scale = (self.table + time[:, None].float()).unbind(1)  # expect
        return x * scale + shift + own.float()


class Model(nn.Module):
    def __init__(self, width: int, depth: int):
        super().__init__()
        self.blocks = nn.ModuleList(Modulated(width) for _ in range(depth))

    def forward(self, x, time):
        for block in self.blocks:
            x = block(x, time, x)
        return x
""",
            good="""\
import torch
from torch import nn


class Modulated(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(2, width))

    def forward(self, x, time, own):
        shift, scale = (self.table + time[:, None].float()).unbind(1)
        return x * scale + shift + own.float()


class Model(nn.Module):
    def __init__(self, width: int, depth: int):
        super().__init__()
        self.blocks = nn.ModuleList(Modulated(width) for _ in range(depth))

    def forward(self, x, time):
        time_float = time.float()
        for block in self.blocks:
            x = block(x, time_float, x)
        return x
""",
            fix=Applicability.REVIEW,
        ),
        Example(
            bad="""\
import torch
from torch import nn


class Attention(nn.Module):
    def forward(self, x, text, bias):
        bias = bias.to(torch.float32)  # expect
        return ((x @ text.to(x.dtype).mT) + bias).softmax(-1) @ text


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention()

    def forward(self, x, text, bias):
        return x + self.attention(x, text, bias)


class Net(nn.Module):
    def __init__(self, depth: int):
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(depth))

    def forward(self, x, text, bias):
        for layer in self.layers:
            x = layer(x, text, bias)
        return x
""",
            good="""\
import torch
from torch import nn


class Attention(nn.Module):
    def forward(self, x, text, bias):
        return ((x @ text.to(x.dtype).mT) + bias).softmax(-1) @ text


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention()

    def forward(self, x, text, bias):
        return x + self.attention(x, text, bias)


class Net(nn.Module):
    def __init__(self, depth: int):
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(depth))

    def forward(self, x, text, bias):
        bias = bias.to(torch.float32)
        for layer in self.layers:
            x = layer(x, text, bias)
        return x
""",
        ),
    ),
)
