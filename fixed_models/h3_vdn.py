"""H3's blocks with decorrelated keys: each block whitens its keys by a Cholesky factor of their covariance before it attends."""
from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812  the name that everybody gives it
from torch import nn


@dataclass(frozen=True)
class Config:
    channels: int = 4
    width: int = 32
    heads: int = 4
    blocks: int = 3
    steps: int = 3
    ridge: float = 1e-3
    device: str = "cuda"
    dtype: torch.dtype = torch.float32


class Whitening(nn.Module):
    """Keys [B, heads, T, D] made uncorrelated over their T positions, in float32."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        head = config.width // config.heads
        self.ridge = config.ridge * torch.eye(head, device=config.device)  # stays float32

    def forward(self, keys: torch.Tensor) -> torch.Tensor:
        centred = keys.float() - keys.float().mean(dim=2, keepdim=True)
        covariance = centred.transpose(2, 3) @ centred / keys.shape[2] + self.ridge
        factor = torch.linalg.cholesky_ex(covariance).L
        white = torch.linalg.solve_triangular(factor, centred.transpose(2, 3), upper=False)
        return white.transpose(2, 3).to(keys.dtype)


class Block(nn.Module):
    """Self-attention with whitened keys, then a feed-forward layer, both modulated by the time."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width, self.heads = config.width, config.heads
        self.norm = nn.LayerNorm(width, elementwise_affine=False, eps=1e-6)
        self.modulation = nn.Linear(width, 6 * width)
        self.qkv = nn.Linear(width, 3 * width)
        self.whiten = Whitening(config)
        self.out = nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU("tanh"), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        shift, scale, gate, feed_shift, feed_scale, feed_gate = self.modulation(time)[:, None].chunk(6, dim=-1)
        x = x + gate * self.attend(self.norm(x) * (1 + scale) + shift)
        return x + feed_gate * self.feed(self.norm(x) * (1 + feed_scale) + feed_shift)

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        attended = F.scaled_dot_product_attention(query, self.whiten(key), value)
        return self.out(attended.transpose(1, 2).flatten(2))


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

    def forward(self, x: torch.Tensor, timestep: torch.Tensor) -> torch.Tensor:
        angles = timestep[:, None].float() * self.frequencies
        time = self.time(torch.cat((angles.cos(), angles.sin()), dim=-1).to(x.dtype))
        hidden = self.patches(x)
        for block in self.blocks:
            hidden = block(hidden, time)
        return self.head(hidden)


@torch.inference_mode()
def denoise(transformer: Transformer, config: Config, noise: torch.Tensor) -> torch.Tensor:
    """Latents [B, T, channels] from noise of that shape, by Euler steps."""
    sigmas = torch.linspace(1.0, 0.0, config.steps + 1, device=noise.device)
    sample = noise
    for index in range(config.steps):
        velocity = transformer(sample, (sigmas[index] * 1000.0).expand(sample.shape[0]))
        sample = sample + (sigmas[index + 1] - sigmas[index]) * velocity
    return sample
