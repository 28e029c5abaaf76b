"""Attention around a ring: each rank keeps its part of the queries, keys and values travel, and partial results are merged at every hop.

One process plays all ranks here: they are the first dimension, and a hop to the neighbour is a roll along it.
"""
from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import torch
from torch import nn


@functools.lru_cache(maxsize=64)
def made_table(values, words, device, dtype):
    with torch.inference_mode(False):
        return torch.tensor(values, device=device, dtype=dtype)


def kept_table(values, device, dtype=None):
    """`torch.tensor(values, ...)`, made once for each key and then shared: nothing may write into it. A capture makes its own."""
    captures = torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()
    make = made_table.__wrapped__ if captures or torch.compiler.is_compiling() else made_table
    return make(values, str(values), device, dtype)


@dataclass(frozen=True)
class Config:
    channels: int = 4
    width: int = 32
    heads: int = 4
    blocks: int = 2
    ranks: int = 3
    steps: int = 3
    device: str = "cuda"
    dtype: torch.dtype = torch.float32


def varlen_attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, query_bounds: torch.Tensor, key_bounds: torch.Tensor, rows: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention within segments, as packed kernels do it, with the logarithm of each row's weights for merging.

    Tensors are [ranks, B, heads, T, D]; bounds are int32, where each segment begins and, last, where the last one ends; `rows` counts
    positions from 0, at least as many as there are keys.
    """
    query_segment = torch.bucketize(rows[: query.shape[-2]], query_bounds, right=True)
    key_segment = torch.bucketize(rows[: key.shape[-2]], key_bounds, right=True)
    scores = query.float() @ key.float().transpose(-2, -1) / math.sqrt(query.shape[-1])
    scores = scores.masked_fill(query_segment[:, None] != key_segment, -math.inf)
    total = scores.logsumexp(dim=-1, keepdim=True)
    return (scores - total).exp() @ value.float(), total


class RingAttention(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.heads, self.ranks = config.heads, config.ranks
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.out = nn.Linear(config.width, config.width)

    def forward(self, x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(2, 3) for part in self.qkv(x).chunk(3, dim=-1))
        merged, total = torch.zeros_like(query, dtype=torch.float32), torch.full_like(query[..., :1], -math.inf, dtype=torch.float32)
        for hop in range(self.ranks):
            query_bounds = kept_table((0, query.shape[-2]), dtype=torch.int32, device=query.device)
            key_bounds = kept_table((0, key.shape[-2]), dtype=torch.int32, device=key.device)
            partial, weight = varlen_attention(query, key, value, query_bounds, key_bounds, rows)
            both = torch.logaddexp(total, weight)
            merged = merged * (total - both).exp() + partial * (weight - both).exp()
            total = both
            if hop < self.ranks - 1:
                key, value = key.roll(1, dims=0), value.roll(1, dims=0)
        return self.out(merged.to(x.dtype).transpose(2, 3).flatten(3))


class Block(nn.Module):
    """Ring attention, then a feed-forward layer, both modulated by the time."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config.width
        self.norm = nn.LayerNorm(width, elementwise_affine=False, eps=1e-6)
        self.modulation = nn.Linear(width, 6 * width)
        self.attention = RingAttention(config)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU("tanh"), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor, time: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        shift, scale, gate, feed_shift, feed_scale, feed_gate = self.modulation(time)[:, None].chunk(6, dim=-1)
        x = x + gate * self.attention(self.norm(x) * (1 + scale) + shift, rows)
        return x + feed_gate * self.feed(self.norm(x) * (1 + feed_scale) + feed_shift)


class Transformer(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        half = config.width // 2
        self.frequencies = torch.exp(-math.log(10_000.0) * torch.arange(half, device=config.device) / half)  # stays float32
        self.time = nn.Sequential(nn.Linear(config.width, config.width), nn.SiLU(), nn.Linear(config.width, config.width), nn.SiLU())
        self.patches = nn.Linear(config.channels, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.blocks))
        self.head = nn.Linear(config.width, config.channels)
        self.to(config.device, config.dtype)

    def forward(self, x: torch.Tensor, timestep: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """`x` is [ranks, B, T, channels]."""
        angles = timestep[:, None].float() * self.frequencies
        time = self.time(torch.cat((angles.cos(), angles.sin()), dim=-1).to(x.dtype))
        hidden = self.patches(x)
        for block in self.blocks:
            hidden = block(hidden, time, rows)
        return self.head(hidden)


@torch.inference_mode()
def denoise(transformer: Transformer, config: Config, noise: torch.Tensor) -> torch.Tensor:
    """Latents [B, ranks * T, channels] from noise of that shape, by Euler steps."""
    sigmas = torch.linspace(1.0, 0.0, config.steps + 1, device=noise.device)
    sample = noise.unflatten(1, (config.ranks, -1)).transpose(0, 1)
    rows = torch.arange(sample.shape[2], device=noise.device)
    for index in range(config.steps):
        velocity = transformer(sample, (sigmas[index] * 1000.0).expand(sample.shape[1]), rows)
        sample = sample + (sigmas[index + 1] - sigmas[index]) * velocity
    return sample.transpose(0, 1).flatten(1, 2)
