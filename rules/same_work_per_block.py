"""Every block joins, fills in or expands the same tables and masks, though all blocks are given the same ones.

## Why it costs
A rotary table whose halves are joined, a mask that is turned into an additive one, positions that are expanded: one or more launches and a
copy of the tensor, in each of twenty to sixty blocks, at every step and branch. The result is the same each time. A model of small kernels
is bound by such launches. The finding is a note: measure first.

## Instead
- Compute it once in the forward that loops over the blocks, in the form in which the blocks use it, and hand that down.
- A helper that prepares the mask or table may leave a prepared one as it is, so that other callers need not change.
- Nothing may write into the shared result.

The same operations on the same tensors give the same bits.

## Not flagged
What depends on the activations, on the block's own weights or on its index; views; casts (cast-per-block has those); tensors for which a
call of the block passes another object; work behind a test for a kept value; code that runs once a request.

## Evidence
By the call graph: the loop over the blocks hands each block the same object; or by convention, in an attention or block whose callers the
scan does not see, for parameters named as rotary tables and attention masks. None of these calls makes the host wait.

## How to confirm
`hostlint.runtime_checks.RecordOps` counts the calls of one forward: as many as blocks before, one after.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.model import Severity
from hostlint.rule import Example, Problem, Rule
from hostlint.wording import amount, when, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    same = f"`{whole(node)}` gives the same result in every block{amount(fact)}, {when(fact)}: {fact.evidence}"
    return Problem(f"{same}; compute it once before the loop over the blocks and hand it down")


RULE = Rule(
    code="HL307",
    name="same-work-per-block",
    summary="every block computes the same from tables and masks that all blocks share",
    kinds=(FactKind.SAME_PER_BLOCK,),
    check=check,
    severity=Severity.NOTE,
    examples=(
        Example(
            bad="""\
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.width = width
        self.mix = nn.Linear(width, width)

    def forward(self, x, cos, sin):
        half = self.width // 2
        table = torch.cat([cos[:, :half], sin[:, :half]], -1)  # expect
        return self.mix(torch.cat([x, x], -1)[..., : self.width]) * table


class Stack(nn.Module):
    def __init__(self, width: int, depth: int):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))

    def forward(self, x, cos, sin):
        for block in self.blocks:
            x = block(x, cos, sin)
        return x
""",
            good="""\
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.width = width
        self.mix = nn.Linear(width, width)

    def forward(self, x, table):
        return self.mix(torch.cat([x, x], -1)[..., : self.width]) * table


class Stack(nn.Module):
    def __init__(self, width: int, depth: int):
        super().__init__()
        self.half = width // 2
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))

    def forward(self, x, cos, sin):
        table = torch.cat([cos[:, : self.half], sin[:, : self.half]], -1)
        for block in self.blocks:
            x = block(x, table)
        return x
""",
        ),
        Example(
            bad="""\
import torch
from torch import nn


class Attention(nn.Module):
    def forward(self, x, seen):
        bias = torch.zeros_like(seen, dtype=x.dtype).masked_fill(~seen, -1e4)  # expect
        return ((x @ x.mT) + bias).softmax(-1) @ x


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention()

    def forward(self, x, seen):
        return x + self.attention(x, seen)


class Net(nn.Module):
    def __init__(self, depth: int):
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(depth))

    def forward(self, x, seen):
        for layer in self.layers:
            x = layer(x, seen)
        return x
""",
            good="""\
import torch
from torch import nn


class Attention(nn.Module):
    def forward(self, x, bias):
        return ((x @ x.mT) + bias).softmax(-1) @ x


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention()

    def forward(self, x, bias):
        return x + self.attention(x, bias)


class Net(nn.Module):
    def __init__(self, depth: int):
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(depth))

    def forward(self, x, seen):
        bias = torch.zeros_like(seen, dtype=x.dtype).masked_fill(~seen, -1e4)
        for layer in self.layers:
            x = layer(x, bias)
        return x
""",
        ),
        Example(
            bad="""\
import torch
from torch import nn


class CrossAttention(nn.Module):
    def forward(self, x, y, rotary_emb):
        cos, sin = rotary_emb
        turned = torch.stack([cos, sin], -1)  # expect
        return torch.stack([x, y], -1) * turned
""",
            good="""\
import torch
from torch import nn


class CrossAttention(nn.Module):
    def forward(self, x, y, turned):
        return torch.stack([x, y], -1) * turned
""",
        ),
    ),
)
