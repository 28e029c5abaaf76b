"""Branches of options: those that a step is seen to take wait, those that no step asks for are quiet."""
import torch
from torch import nn


class Block(nn.Module):
    def forward(self, x: torch.Tensor, mask=None, collect=False, lengths=None, shared=None):
        if mask is not None:
            x = x + mask.sum().item()  # expect: HL101
        if collect:
            self.seen = x.sum().item()  # ok: nobody asks for it
        if not collect:
            x = x * x.max().item()  # expect: HL101
        if lengths is None:
            return x
        return x[: int(lengths.max())]  # ok: nobody passes lengths


def scale(x: torch.Tensor, by=None, verbose=False, limit=None, rows=False):
    if by is not None and x.dim() > 1:
        x = x * by.max().item()  # ok: nobody passes it
    elif limit:
        x = x / limit.max().item()  # expect: HL101
    if rows:
        x = x + x.min().item()  # expect: HL101
    return x


class Lonely(nn.Module):
    def forward(self, x: torch.Tensor, by: torch.Tensor | None = None):
        if by is not None:
            x = x * by.max().item()  # expect: HL101
        return x


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(3)])

    def forward(self, x: torch.Tensor, mask: torch.Tensor, limit: torch.Tensor, **options):
        for block in self.blocks:
            x = block(x, mask, collect=False)
            x = block(x, mask)
            x = scale(x, limit=limit, rows=options["rows"])
            x = scale(x, None, limit=limit)
        return x


def scaled_loss(x: torch.Tensor, by=None):
    if by is None:
        return x.sum()
    by = by.float()
    return x.sum() * by.max().item()  # expect: HL101


class Reader(nn.Module):
    def forward(self, x: torch.Tensor, labels=None):
        if labels is not None:
            x = x + labels.sum().item()  # expect: HL101
        return x


class Second(Reader):
    def forward(self, x: torch.Tensor, labels=None):
        if labels is not None:
            x = x + labels.max().item()  # expect: HL101
        return x


class Third(Second):
    def forward(self, x: torch.Tensor, labels=None):
        return x


class Fourth(Second):
    def forward(self, x: torch.Tensor, labels=None):
        return x + 1


class Fifth(Second):
    def forward(self, x: torch.Tensor, labels=None):
        return x + 2


class Guess(nn.Module):
    def __init__(self, assistant: Reader):
        super().__init__()
        self.assistant = assistant

    def forward(self, x: torch.Tensor, tokens):
        for token in tokens:
            x = self.assistant(x)  # written for any reader: it says nothing of one
        return x
