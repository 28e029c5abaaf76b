"""A training loop as most are written: a classifier of token sequences, an epoch at a time, with its sums, norms, checks and progress."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812  the name that everybody gives it
from torch import nn


@dataclass(frozen=True)
class Config:
    tokens: int = 64
    classes: int = 5
    width: int = 32
    heads: int = 4
    blocks: int = 2
    epochs: int = 2
    rate: float = 1e-2
    clip: float = 1.0
    show_every: int = 3
    device: str = "cuda"
    dtype: torch.dtype = torch.float32


@dataclass(frozen=True)
class Epoch:
    """What an epoch was like: mean loss and share of right answers, and the norm of the gradient at every step."""

    loss: float
    accuracy: float
    norms: Sequence[float]


class Block(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width, self.heads = config.width, config.heads
        self.norm, self.feed_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attend(self.norm(x))
        return x + self.feed(self.feed_norm(x))

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        return self.out(F.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2))


class Classifier(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.embedding = nn.Embedding(config.tokens, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.blocks))
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, config.classes)
        self.to(config.device, config.dtype)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        hidden = self.embedding(tokens)
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(self.norm(hidden).mean(dim=1))


def train_epoch(
    model: Classifier,
    optimizer: torch.optim.Optimizer,
    batches: Sequence[tuple[torch.Tensor, torch.Tensor]],
    config: Config,
    show: Callable[[int, float], None],
) -> Epoch:
    """One pass over batches of tokens [B, T] and classes [B]. Raises FloatingPointError where the loss is NaN."""
    model.train()
    total, correct, seen = 0.0, 0, 0
    norms: list[float] = []
    for step, (tokens, classes) in enumerate(batches):
        tokens = tokens.to(config.device, non_blocking=True)
        classes = classes.to(config.device, non_blocking=True)
        logits = model(tokens)
        loss = F.cross_entropy(logits.float(), classes)
        if torch.isnan(loss):  # expect: HL103
            raise FloatingPointError("the loss is NaN")
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), config.clip)
        optimizer.step()
        norms.append(norm.item())  # expect: HL101
        total += loss.item() * classes.shape[0]  # expect: HL101
        correct += (logits.argmax(dim=-1) == classes).sum().item()  # expect: HL101
        seen += classes.shape[0]
        shown = loss.item()  # expect: HL101
        if step % config.show_every == 0:
            show(step, shown)
    return Epoch(total / seen, correct / seen, norms)


def train(
    model: Classifier, config: Config, batches: Sequence[tuple[torch.Tensor, torch.Tensor]], show: Callable[[int, float], None]
) -> list[Epoch]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.rate, foreach=False)
    return [train_epoch(model, optimizer, batches, config, show) for _ in range(config.epochs)]
