"""A denoising stage: flow-match Euler steps over a diffusion transformer, both branches of guidance in one batch."""
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
    blocks: int = 2
    text_width: int = 16
    steps: int = 4
    shift: float = 3.0
    guidance: float = 4.0
    device: str = "cuda"
    dtype: torch.dtype = torch.float32


def rotary_table(length: int, width: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines of `length` positions, made on the device in float32."""
    frequencies = 10_000.0 ** (-torch.arange(0, width, 2, device=device) / width)
    angles = torch.outer(torch.arange(length, device=device), frequencies)
    return angles.cos(), angles.sin()


def rotate(x: torch.Tensor, rotary: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    cos, sin = rotary
    even, odd = x.float().unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2).to(x.dtype)


class Block(nn.Module):
    """Self-attention over text and image, then a feed-forward layer, both modulated by the time."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width, self.heads = config.width, config.heads
        self.norm = nn.LayerNorm(width, elementwise_affine=False, eps=1e-6)
        self.modulation = nn.Linear(width, 6 * width)
        self.qkv = nn.Linear(width, 3 * width)
        self.query_norm = nn.RMSNorm(width // config.heads, eps=1e-6)
        self.key_norm = nn.RMSNorm(width // config.heads, eps=1e-6)
        self.out = nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU("tanh"), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor, time: torch.Tensor, rotary: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        shift, scale, gate, feed_shift, feed_scale, feed_gate = self.modulation(time)[:, None].chunk(6, dim=-1)
        x = x + gate * self.attend(self.norm(x) * (1 + scale) + shift, rotary)
        return x + feed_gate * self.feed(self.norm(x) * (1 + feed_scale) + feed_shift)

    def attend(self, x: torch.Tensor, rotary: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        query, key = rotate(self.query_norm(query), rotary), rotate(self.key_norm(key), rotary)
        attended = F.scaled_dot_product_attention(query, key, value)
        return self.out(attended.transpose(1, 2).flatten(2))


class Transformer(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        half = config.width // 2
        self.frequencies = torch.exp(-math.log(10_000.0) * torch.arange(half, device=config.device) / half)  # stays float32
        self.time = nn.Sequential(nn.Linear(config.width, config.width), nn.SiLU(), nn.Linear(config.width, config.width))
        self.text = nn.Linear(config.text_width, config.width)
        self.patches = nn.Linear(config.channels, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.blocks))
        self.norm = nn.LayerNorm(config.width, elementwise_affine=False, eps=1e-6)
        self.head = nn.Linear(config.width, config.channels)
        self.to(config.device, config.dtype)

    def forward(
        self, x: torch.Tensor, timestep: torch.Tensor, text: torch.Tensor, rotary: tuple[torch.Tensor, torch.Tensor]
    ) -> torch.Tensor:
        angles = timestep[:, None].float() * self.frequencies
        time = F.silu(self.time(torch.cat((angles.cos(), angles.sin()), dim=-1).to(x.dtype)))
        hidden = torch.cat((self.text(text), self.patches(x)), dim=1)
        for block in self.blocks:
            hidden = block(hidden, time, rotary)
        return self.head(self.norm(hidden[:, text.shape[1] :]))


class FlowMatchEuler:
    """The schedule lies on the device; steps are counted by Python, so that nothing has to be read to index it."""

    def __init__(self, steps: int, shift: float, device: torch.device) -> None:
        sigmas = torch.linspace(1.0, 0.0, steps + 1, device=device)
        self.sigmas = shift * sigmas / (1 + (shift - 1) * sigmas)
        self.timesteps = self.sigmas[:-1] * 1000.0

    def step(self, velocity: torch.Tensor, index: int, sample: torch.Tensor) -> torch.Tensor:
        return sample + (self.sigmas[index + 1] - self.sigmas[index]) * velocity


class Stage:
    def __init__(self, config: Config) -> None:
        self.config = config
        self.transformer = Transformer(config)

    @torch.inference_mode()
    def __call__(self, noise: torch.Tensor, text: torch.Tensor, negative: torch.Tensor) -> torch.Tensor:
        """Latents [B, T, channels] from noise of that shape, under two texts [B, L, text_width]."""
        config = self.config
        scheduler = FlowMatchEuler(config.steps, config.shift, noise.device)
        rotary = rotary_table(text.shape[1] + noise.shape[1], config.width // config.heads, noise.device)
        both = torch.cat((text, negative))
        sample = noise
        for index, timestep in enumerate(scheduler.timesteps):
            velocity = self.transformer(torch.cat((sample, sample)), timestep.expand(2 * sample.shape[0]), both, rotary)
            wanted, unwanted = velocity.chunk(2)
            sample = scheduler.step(unwanted + config.guidance * (wanted - unwanted), index, sample)
        return sample
