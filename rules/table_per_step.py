"""A helper builds a mask, positions or attention metadata from sizes alone, and every step or block asks it again.

## Why it costs
Lengths, frames, heights and a device decide the result, and they are the same at every step of a request. Each call makes its tensors anew:
some launches for the index tensors, more where it fills a mask piece by piece, an upload where it starts from a list of lengths. None of it
is needed after the first call.

## Instead
- A small module-level memo: `functools.lru_cache(maxsize=8)` on the helper, whose key is the sizes, the dtype and the device. Lists become
  tuples for that.
- Or build it where the request is prepared, and hand it down with the inputs.
- The result is shared then: callers copy a dictionary before they add to it, and write into no tensor; a constant part that a caller blanks
  goes into what is kept, too.
- Under graph capture build a fresh one: what a capture records has not run yet and must not enter the memo.

The same helper with the same sizes gives the same bits.

## Not flagged
Helpers that take a tensor, read state, draw random numbers or are kept already; arguments named as steps, offsets, indices or positions;
forwards with a cache that grows; code that runs once a request; one index tensor alone (rebuilt-constant). Helpers that only allocate, and
results that the caller writes data into: a kept buffer would be written to by every call that it serves.

## Evidence
By the graph of calls: all that the helper does is to make tensors of its arguments, and these are numbers by their values or their names. A
serving engine keeps such metadata per (lengths, device) since a release that found one upload and a dozen launches in every forward.

## How to confirm
Count the helper's calls in two steps, and compare its results with `torch.equal`.
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
        f"`{whole(node)}` builds the same tensors again {when(fact)}: {fact.evidence}; keep its result per (sizes, dtype, device) in a "
        "small `lru_cache`, or build it once for each request"
    )


RULE = Rule(
    code="HL308",
    name="table-per-step",
    summary="a helper builds masks, positions or metadata from sizes alone, at every step",
    kinds=(FactKind.SIZE_TABLE,),
    check=check,
    severity=Severity.NOTE,
    examples=(
        Example(
            bad="""\
import torch
from torch import nn


def joint_mask(batch_size: int, text_len: int, image_len: int, device: torch.device):
    mask = torch.zeros(batch_size, text_len + image_len, dtype=torch.bool, device=device)
    mask[:, text_len:] = True
    return torch.cat([mask, mask], -1)


def grown(mask, extra_len: int):
    return torch.cat([mask, mask.new_zeros(extra_len)])


class Model(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.mix = nn.Linear(width, width)

    def forward(self, x, image_len: int, text_len: int):
        mask = joint_mask(x.shape[0], text_len, image_len, x.device)  # expect
        return self.mix(x) * grown(mask, text_len)
""",
            good="""\
from functools import lru_cache

import torch
from torch import nn


@lru_cache(maxsize=8)
def joint_mask(batch_size: int, text_len: int, image_len: int, device: torch.device):
    mask = torch.zeros(batch_size, text_len + image_len, dtype=torch.bool, device=device)
    mask[:, text_len:] = True
    return torch.cat([mask, mask], -1)


def grown(mask, extra_len: int):
    return torch.cat([mask, mask.new_zeros(extra_len)])


class Model(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.mix = nn.Linear(width, width)

    def forward(self, x, image_len: int, text_len: int):
        mask = joint_mask(x.shape[0], text_len, image_len, x.device)
        return self.mix(x) * grown(mask, text_len)
""",
        ),
        Example(
            bad="""\
import torch

net = torch.nn.Linear(8, 8).cuda()


def halves(height: int, width: int, device: torch.device):
    rows = torch.linspace(0, 1, height, device=device)
    columns = torch.linspace(0, 1, width, device=device)
    return torch.stack(torch.meshgrid(rows, columns, indexing="ij"))


def window(start: int, width: int, device: torch.device):
    return torch.cat([torch.zeros(start, device=device), torch.ones(width, device=device)])


def denoise(x, timesteps, batch):
    x = x.cuda()
    for step, t in enumerate(timesteps):
        grid = halves(batch.height, batch.width, x.device)  # expect
        x = net(x + grid[0]) * window(step, batch.width, x.device)
    return x
""",
            good="""\
import torch

net = torch.nn.Linear(8, 8).cuda()


def halves(height: int, width: int, device: torch.device):
    rows = torch.linspace(0, 1, height, device=device)
    columns = torch.linspace(0, 1, width, device=device)
    return torch.stack(torch.meshgrid(rows, columns, indexing="ij"))


def window(start: int, width: int, device: torch.device):
    return torch.cat([torch.zeros(start, device=device), torch.ones(width, device=device)])


def denoise(x, timesteps, batch):
    x = x.cuda()
    grid = halves(batch.height, batch.width, x.device)
    for step, t in enumerate(timesteps):
        x = net(x + grid[0]) * window(step, batch.width, x.device)
    return x
""",
        ),
        Example(
            bad="""\
import torch
from torch import nn


def ranges(text_len: int, image_len: int):
    return [(0, text_len), (text_len, text_len + image_len)]


def indices(text_len: int, image_len: int, device: torch.device):
    return torch.cat([torch.arange(a, b, device=device) for a, b in ranges(text_len, image_len)])


class Model(nn.Module):
    def forward(self, x, txt_seq_lens, image_len: int):
        order = indices(max(txt_seq_lens), image_len, x.device)  # expect
        return x[:, order]
""",
            good="""\
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, order):
        return x[:, order]
""",
        ),
    ),
)
