"""A memo of one entry is asked for two things in turn: each call throws away what the next one needs, and none ever hits.

## Why it costs
`lru_cache(maxsize=1)`, or an attribute that keeps the last key and its value, pays off where the same key comes again and again. In
classifier-free guidance a step calls the model for each branch; where the key holds what tells them apart (the length of the text), the
branches drive each other's entry out. Every call then does all that the memo was to save, and the waits in it are paid at every step,
although they look as if they were kept.

## Instead
- `lru_cache(maxsize=8)`: as many entries as a step asks for, and a few for the next request. What an entry holds stays in memory.
- A dictionary by key in place of the pair of attributes, emptied with the request.
- Or one memo for each branch, or the result made once a request and handed in.

Bits: the same results, computed once.

## Not flagged
Memos whose calls in one step come with the same arguments, as far as the key takes them: both branches get the same latents, so that a
table for the size of the picture hits. Calls of which a test runs only one; a loop over steps or layers, which ask for the same key until
the step is over; memos of cheap things (up to two launches, no wait); what the scan cannot follow. Two tensors whose shapes make the
key may have the same one: `possible`, unless one of them is a text or the name of a branch speaks for it. So is the memo of a denoiser
(its forward takes the time and the text) that is keyed by the text, where the calls for the branches cannot be followed. The lines inside
of the memo are as cold as in any other memo: the entry is what is too few.

## Evidence
By the calls that reach the memo: two of one step, on one object, or a loop within a step over branches or parts, whose arguments are seen
to differ where the key takes them; up to four functions away.

## How to confirm
`cache_info()` of the function after a few steps: as many misses as calls.
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
    cure = "write `maxsize=8`" if fact.detail == "maxsize" else "keep a dictionary by key"
    return Problem(f"`{whole(node)}` keeps one entry, and never hits {when(fact)}: {fact.evidence}; {cure}, or one memo for each branch")


RULE = Rule(
    code="HL313",
    name="single-entry-cache",
    summary="a memo of one entry is asked for two things in turn, so that it never hits",
    kinds=(FactKind.SINGLE_ENTRY,),
    check=check,
    severity=Severity.NOTE,
    examples=(
        Example(
            bad="""\
from functools import lru_cache

import torch
from torch import nn


class Denoiser(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.net = nn.Linear(width, width)

    @lru_cache(maxsize=1)  # expect
    def table(self, text_len: int, device: torch.device):
        positions = torch.arange(text_len, device=device)
        return torch.outer(positions, positions).cos()

    @lru_cache(maxsize=1)
    def grid(self, height: int, device: torch.device):
        rows = torch.arange(height, device=device)
        return torch.outer(rows, rows).cos()

    def forward(self, x, t, prompt_embeds):
        rows = self.grid(x.shape[1], x.device)
        return self.net(x) * rows.sum() * self.table(prompt_embeds.shape[1], x.device).sum()


def denoise(model: Denoiser, scheduler, x, text, negative):
    for t in scheduler.timesteps:
        cond = model(x, t, text)
        uncond = model(x, t, negative)
        x = scheduler.step(uncond + 3 * (cond - uncond), t, x)
    return x
""",
            good="""\
from functools import lru_cache

import torch
from torch import nn


class Denoiser(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.net = nn.Linear(width, width)

    @lru_cache(maxsize=8)
    def table(self, text_len: int, device: torch.device):
        positions = torch.arange(text_len, device=device)
        return torch.outer(positions, positions).cos()

    @lru_cache(maxsize=1)
    def grid(self, height: int, device: torch.device):
        rows = torch.arange(height, device=device)
        return torch.outer(rows, rows).cos()

    def forward(self, x, t, prompt_embeds):
        rows = self.grid(x.shape[1], x.device)
        return self.net(x) * rows.sum() * self.table(prompt_embeds.shape[1], x.device).sum()


def denoise(model: Denoiser, scheduler, x, text, negative):
    for t in scheduler.timesteps:
        cond = model(x, t, text)
        uncond = model(x, t, negative)
        x = scheduler.step(uncond + 3 * (cond - uncond), t, x)
    return x
""",
        ),
        Example(
            bad="""\
import torch
from torch import nn


class Packer(nn.Module):
    def __init__(self):
        super().__init__()
        self.key, self.index = None, None

    def packed(self, lengths: tuple[int, ...], device):
        if lengths != self.key:  # expect
            mask = torch.tensor(lengths).to(device) > 0
            self.key, self.index = lengths, mask.nonzero()
        return self.index

    def forward(self, x, lengths: tuple[int, ...]):
        return x[self.packed(lengths, x.device)[:, 0]]


def denoise(packer: Packer, scheduler, x, branches):
    for t in scheduler.timesteps:
        for lengths in branches:
            x = packer(x, lengths)
        x = scheduler.step(x, t)
    return x
""",
            good="""\
import torch
from torch import nn


class Packer(nn.Module):
    def __init__(self):
        super().__init__()
        self.indices = {}

    def packed(self, lengths: tuple[int, ...], device):
        if lengths not in self.indices:
            mask = torch.tensor(lengths).to(device) > 0
            self.indices[lengths] = mask.nonzero()
        return self.indices[lengths]

    def forward(self, x, lengths: tuple[int, ...]):
        return x[self.packed(lengths, x.device)[:, 0]]


def denoise(packer: Packer, scheduler, x, branches):
    for t in scheduler.timesteps:
        for lengths in branches:
            x = packer(x, lengths)
        x = scheduler.step(x, t)
    return x
""",
        ),
        Example(
            bad="""\
from functools import lru_cache

import torch
from torch import nn


class Joint(nn.Module):
    @lru_cache(1)  # expect
    def mask(self, rows: int, columns: int, device: torch.device):
        return torch.ones(rows, columns, device=device).tril().log()

    @lru_cache(1)
    def width(self, rows: int):
        return 2 * rows

    def forward(self, x, text, layers):
        for layer in layers:
            x = x + layer(x) * self.width(x.shape[1]) * self.width(text.shape[1])
        own = self.mask(x.shape[1], x.shape[1], x.device)
        return x @ own @ self.mask(x.shape[1], text.shape[1], x.device)
""",
            good="""\
from functools import lru_cache

import torch
from torch import nn


class Joint(nn.Module):
    @lru_cache(8)
    def mask(self, rows: int, columns: int, device: torch.device):
        return torch.ones(rows, columns, device=device).tril().log()

    @lru_cache(1)
    def width(self, rows: int):
        return 2 * rows

    def forward(self, x, text, layers):
        for layer in layers:
            x = x + layer(x) * self.width(x.shape[1]) * self.width(text.shape[1])
        own = self.mask(x.shape[1], x.shape[1], x.device)
        return x @ own @ self.mask(x.shape[1], text.shape[1], x.device)
""",
        ),
    ),
)
