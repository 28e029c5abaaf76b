"""A Python loop writes a tensor row by row, a few launches for each, although no row depends on another.

## Why it costs
Each pass launches a kernel for every operation in it: a product, a sum, a write. Hundreds of rows make a thousand launches of a few
microseconds of host time each, on rows that the device finishes in less than that. The device waits for the host, not the other way
round.

## Instead
- Rows that only differ by a weight: one expression over the whole, `a * (1 - w) + b * w`, with `w` a tensor of the weights in the place of
  the counter (`torch.arange(n, device=a.device) / n`, viewed to the row's shape).
- A mask that is filled row by row: a comparison of two index tensors, `columns[None] < ends[:, None]`.
- Rows that are looked up: one index tensor, or `gather`.

Bits: a Python number is a double that is rounded once where it meets the tensor. Weights that are computed in float64 on the device and
cast once give the same results; weights computed in float32 may differ in the last bit.

## Not flagged
Loops in which a pass reads what an earlier one wrote; slices that may overlap and are added to (tiles); loops with calls of models or
functions in them, with conditions on anything but what tells the passes apart, or with another loop inside; up to four rows; tensors that
are on the host; lists of tensors, and lists that nothing says to hold numbers. What blends the tiles of a picture that is encoded or
decoded runs once a request, and is told at that heat. A list that names a row twice scales it twice: one write with an index tensor does it
once, so look whether yours can.

## Evidence
By the graph of values: the loop only writes by its own counter, by the numbers of a list, or into the rows of a tensor that it walks over,
and reads no other row of the same tensor. A tiled image decoder that blends its seams so spends three kernels a row, hundreds of rows a
seam.

## How to confirm
Count the kernels of one call in a profile, and compare the results with `torch.equal`.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from hostlint.facts.kinds import FactKind
from hostlint.model import Severity
from hostlint.rule import Example, Problem, Rule
from hostlint.wording import when, whole

if TYPE_CHECKING:
    import libcst as cst

    from hostlint.facts.fact import Fact


def check(fact: Fact, node: cst.BaseExpression) -> Problem | None:
    return Problem(
        f"`{whole(node)}` is written row by row, with launches for each, {when(fact)}: {fact.evidence}; write the whole in one expression, "
        "with a tensor in the place of the counter"
    )


RULE = Rule(
    code="HL309",
    name="launch-loop",
    summary="a Python loop writes a tensor row by row, although no row depends on another",
    kinds=(FactKind.LAUNCH_LOOP,),
    check=check,
    severity=Severity.NOTE,
    examples=(
        Example(
            bad="""\
import torch


def penalize(model, x, history: list[int], steps: int):
    logits = model(x.cuda())
    for step in range(steps):
        for token in history:
            if token >= logits.shape[-1]:
                continue
            logits[0, token] /= 1.05  # expect
        x = model(logits.argmax(-1))
    return x
""",
            good="""\
import torch


def penalize(model, x, seen, steps: int):
    logits = model(x.cuda())
    for step in range(steps):
        logits = torch.where(seen, logits / 1.05, logits)
        x = model(logits.argmax(-1))
    return x
""",
        ),
        Example(
            bad="""\
import torch
from torch import nn


class Decoder(nn.Module):
    def blend(self, a, b, extent: int):
        for y in range(extent):
            b[:, :, y, :] = a[:, :, y - extent, :] * (1 - y / extent) + b[:, :, y, :] * (y / extent)  # expect
        return b

    def forward(self, a, b, extent: int):
        for y in range(1, extent):
            b[:, :, y, :] = b[:, :, y - 1, :] + a[:, :, y, :]
        return self.blend(a, b, extent)
""",
            good="""\
import torch
from torch import nn


class Decoder(nn.Module):
    def blend(self, a, b, extent: int, weight):
        b[:, :, :extent] = a[:, :, -extent:] * (1 - weight) + b[:, :, :extent] * weight
        return b

    def forward(self, a, b, extent: int, weight):
        for y in range(1, extent):
            b[:, :, y, :] = b[:, :, y - 1, :] + a[:, :, y, :]
        return self.blend(a, b, extent, weight)
""",
        ),
        Example(
            bad="""\
import torch
from torch import nn


class Causal(nn.Module):
    def forward(self, x, frames: int, width: int):
        mask = torch.full((frames * width, frames * width), -1e4, device=x.device)
        for i in range(frames * width):
            frame = i // width
            mask[i, : (frame + 1) * width] = 0  # expect
        for i in range(3):
            mask[i, :] = 0
        return x @ x.mT + mask
""",
            good="""\
import torch
from torch import nn


class Causal(nn.Module):
    def forward(self, x, frame):
        mask = torch.where(frame[:, None] >= frame, 0.0, -1e4)
        return x @ x.mT + mask
""",
        ),
        Example(
            bad="""\
import torch
from torch import nn


class Scale(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.mix = nn.Linear(width, width)

    def forward(self, x, out, n: int):
        for i in range(n):
            out[i] *= i / n  # expect
        for i in range(n):
            out[i] = self.mix(x[i])
        return out
""",
            good="""\
import torch
from torch import nn


class Scale(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.mix = nn.Linear(width, width)

    def forward(self, x, out, n: int):
        weights = torch.linspace(0, 1, n + 1, device=x.device)[:-1]
        out *= weights[:, None]
        for i in range(n):
            out[i] = self.mix(x[i])
        return out
""",
        ),
    ),
)
