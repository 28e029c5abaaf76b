"""Autoregressive decoding with a cache of keys and values: repeated tokens made less likely, sampling, and a score for each token."""
from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812  the name that everybody gives it
from torch import nn


@dataclass(frozen=True)
class Config:
    tokens: int = 32
    width: int = 32
    heads: int = 4
    blocks: int = 2
    steps: int = 8
    end: int = 31
    penalty: float = 1.3
    temperature: float = 0.8
    device: str = "cuda"
    dtype: torch.dtype = torch.float32


class Block(nn.Module):
    """Causal self-attention over the cache, then a feed-forward layer."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width, self.heads = config.width, config.heads
        self.norm, self.feed_norm = nn.RMSNorm(width, eps=1e-6), nn.RMSNorm(width, eps=1e-6)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate, self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor, cache: torch.Tensor, length: int) -> torch.Tensor:
        """`cache` [2, B, heads, longest, D] holds keys and values; those of `x` [B, T, width] are written behind `length` others."""
        x = x + self.attend(self.norm(x), cache, length)
        normed = self.feed_norm(x)
        return x + self.down(F.silu(self.gate(normed)) * self.up(normed))

    def attend(self, x: torch.Tensor, cache: torch.Tensor, length: int) -> torch.Tensor:
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        filled = length + x.shape[1]
        cache[0, :, :, length:filled], cache[1, :, :, length:filled] = key, value
        keys, values = cache[:, :, :, :filled]
        attended = F.scaled_dot_product_attention(query, keys, values, is_causal=x.shape[1] > 1)
        return self.out(attended.transpose(1, 2).flatten(2))


class Decoder(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.tokens, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.blocks))
        self.norm = nn.RMSNorm(config.width, eps=1e-6)
        self.head = nn.Linear(config.width, config.tokens)
        half = config.width // 2
        self.to(config.device, config.dtype)
        self.frequencies = torch.exp(-math.log(10_000.0) * torch.arange(half, device=config.device) / half)  # stays float32

    def forward(self, tokens: torch.Tensor, positions: torch.Tensor, caches: torch.Tensor, length: int) -> torch.Tensor:
        """Logits [B, tokens] after the last of `tokens` [B, T], which stand at `positions` [T], behind `length` others."""
        angles = positions[:, None].float() * self.frequencies
        hidden = self.embedding(tokens) + torch.cat((angles.cos(), angles.sin()), dim=-1).to(self.config.dtype)
        for block, cache in zip(self.blocks, caches, strict=True):
            hidden = block(hidden, cache, length)
        return self.head(self.norm(hidden[:, -1]))


def next_token(logits: torch.Tensor, seen: torch.Tensor, config: Config, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """A token [B] drawn from logits [B, tokens], and the logarithm of its probability; tokens seen before are less likely."""
    logits[seen] /= config.penalty  # expect: HL112
    chances = torch.distributions.Categorical(logits=logits / config.temperature)  # expect: HL115
    token = torch.multinomial(chances.probs, 1, generator=generator)[:, 0]
    return token, chances.log_prob(token)


@torch.inference_mode()
def generate(model: Decoder, prompt: torch.Tensor, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens [B, n] that follow a prompt [B, T], at most `steps`, and their scores; stops when all rows have ended."""
    config, (batch, start) = model.config, prompt.shape
    generator = torch.Generator(prompt.device).manual_seed(seed)
    size = (config.blocks, 2, batch, config.heads, start + config.steps, config.width // config.heads)
    caches = torch.zeros(size, device=prompt.device, dtype=config.dtype)
    positions = torch.arange(start + config.steps, device=prompt.device)
    seen = torch.zeros(batch, config.tokens, dtype=torch.bool, device=prompt.device)
    seen.scatter_(1, prompt, True)
    logits = model(prompt, positions[:start], caches, 0)
    ended = torch.zeros(batch, dtype=torch.bool, device=prompt.device)
    tokens, scores = [], []
    following = positions[start:]
    for position in following:
        token, score = next_token(logits, seen, config, generator)
        token = torch.where(ended, config.end, token)
        seen.scatter_(1, token[:, None], True)
        tokens.append(token)
        scores.append(score)
        ended |= token == config.end
        if ended.all():  # hostlint: ignore[device-truth-test] it decides how many tokens there are
            break
        length = int(position)  # expect: HL102
        logits = model(token[:, None], position[None], caches, length)
    return torch.stack(tokens, dim=1), torch.stack(scores, dim=1)
