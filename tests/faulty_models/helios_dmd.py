"""Helios's distilled sampler: video in chunks, each in a few steps that guess the clean chunk and add noise of the next timestep."""
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
    steps: int = 3
    chunks: int = 2
    device: str = "cuda"
    dtype: torch.dtype = torch.float32


class Block(nn.Module):
    """The chunk attends to itself and to what was made before; then a feed-forward layer. Both are modulated by the time."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width, self.heads = config.width, config.heads
        self.norm = nn.LayerNorm(width, elementwise_affine=False, eps=1e-6)
        self.modulation = nn.Linear(width, 6 * width)
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU("tanh"), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor, history: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        shift, scale, gate, feed_shift, feed_scale, feed_gate = self.modulation(time)[:, None].chunk(6, dim=-1)
        normed = self.norm(x) * (1 + scale) + shift
        x = x + gate * self.attend(normed, torch.cat((self.norm(history), normed), dim=1))
        return x + feed_gate * self.feed(self.norm(x) * (1 + feed_scale) + feed_shift)

    def attend(self, x: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        parts = (self.query(x), *self.key_value(context).chunk(2, dim=-1))
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        return self.out(F.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2))


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

    def forward(self, x: torch.Tensor, history: torch.Tensor, timestep: torch.Tensor) -> torch.Tensor:
        angles = timestep[:, None].float() * self.frequencies
        time = self.time(torch.cat((angles.cos(), angles.sin()), dim=-1).to(x.dtype))
        both = self.patches(torch.cat((history, x), dim=1))
        before, hidden = both.split((history.shape[1], x.shape[1]), dim=1)
        for block in self.blocks:
            hidden = block(hidden, before, time)
        return self.head(hidden)


class DistilledSchedule:
    """Timesteps and the noise level of each of the thousand trained ones, on the device."""

    def __init__(self, steps: int, device: torch.device) -> None:
        self.timesteps = torch.linspace(999.0, 0.0, steps + 1, device=device)
        self.levels = torch.arange(1000, device=device) / 999.0

    def step(
        self, velocity: torch.Tensor, tick: torch.Tensor, following: torch.Tensor, sample: torch.Tensor, noise: torch.Tensor
    ) -> torch.Tensor:
        now = torch.full((sample.shape[0],), tick, dtype=torch.long, device=sample.device)  # expect: HL108
        then = torch.full((sample.shape[0],), following, dtype=torch.long, device=sample.device)  # expect: HL108
        clean = sample - self.levels[now][:, None, None].to(sample.dtype) * velocity
        level = self.levels[then][:, None, None].to(sample.dtype)
        return (1 - level) * clean + level * noise


@torch.inference_mode()
def generate(transformer: Transformer, config: Config, start: torch.Tensor, seed: int = 0) -> torch.Tensor:
    """Latents [B, chunks * T, channels], each chunk after the one before; `start` [B, T, channels] is what the first one sees."""
    schedule = DistilledSchedule(config.steps, start.device)
    generator = torch.Generator(start.device).manual_seed(seed)
    made = [start]
    for _ in range(config.chunks):
        sample = torch.empty_like(start).normal_(generator=generator)
        for tick, following in zip(schedule.timesteps[:-1], schedule.timesteps[1:], strict=True):
            velocity = transformer(sample, made[-1], tick.expand(start.shape[0]))
            noise = torch.empty_like(sample).normal_(generator=generator)
            sample = schedule.step(velocity, tick, following, sample, noise)
        made.append(sample)
    return torch.cat(made[1:], dim=1)
