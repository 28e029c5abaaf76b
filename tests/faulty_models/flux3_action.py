"""FLUX.3 Action: a policy denoises a window of actions under an observation; its solver and its predictor see the time differently."""
from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812  the name that everybody gives it
from torch import nn


@dataclass(frozen=True)
class Config:
    actions: int = 7
    observed: int = 12
    width: int = 32
    heads: int = 4
    blocks: int = 2
    steps: int = 4
    device: str = "cuda"
    dtype: torch.dtype = torch.float32


class Block(nn.Module):
    """The actions attend to each other and to the observation; then a feed-forward layer, both modulated by the time."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width, self.heads = config.width, config.heads
        self.norm = nn.RMSNorm(width, eps=1e-6)
        self.modulation = nn.Linear(width, 6 * width)
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor, observation: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        shift, scale, gate, feed_shift, feed_scale, feed_gate = self.modulation(time)[:, None].chunk(6, dim=-1)
        normed = self.norm(x) * (1 + scale) + shift
        x = x + gate * self.attend(normed, torch.cat((observation, normed), dim=1))
        return x + feed_gate * self.feed(self.norm(x) * (1 + feed_scale) + feed_shift)

    def attend(self, x: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        parts = (self.query(x), *self.key_value(context).chunk(2, dim=-1))
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        return self.out(F.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2))


class Predictor(nn.Module):
    """Velocities of a window of actions; the time is a Python float from 0 to 1, which travels as an argument of the kernel."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        half = config.width // 2
        self.frequencies = torch.exp(-math.log(10_000.0) * torch.arange(half, device=config.device) / half)  # stays float32
        self.time = nn.Sequential(nn.Linear(config.width, config.width), nn.SiLU(), nn.Linear(config.width, config.width), nn.SiLU())
        self.observe = nn.Linear(config.observed, config.width)
        self.embed = nn.Linear(config.actions, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.blocks))
        self.head = nn.Linear(config.width, config.actions)
        self.to(config.device, config.dtype)

    def forward(self, x: torch.Tensor, time: float, observation: torch.Tensor) -> torch.Tensor:
        """`observation` is what `observe` made of it, once for the window."""
        angles = (self.frequencies * (1000.0 * time)).expand(x.shape[0], -1)
        embedded = self.time(torch.cat((angles.cos(), angles.sin()), dim=-1).to(x.dtype))
        hidden = self.embed(x)
        for block in self.blocks:
            hidden = block(hidden, observation, embedded)
        return self.head(hidden)


class Solver:
    """Two-step flow solver; ticks from 1000 down lie on the device."""

    def __init__(self, steps: int, device: torch.device) -> None:
        self.ticks = torch.linspace(1000.0, 0.0, steps + 1, device=device)[:-1]
        self.size = 1.0 / steps
        self.before: torch.Tensor | None = None

    def step(self, velocity: torch.Tensor, tick: torch.Tensor, sample: torch.Tensor) -> torch.Tensor:
        bent = velocity if self.before is None else 1.5 * velocity - 0.5 * self.before
        self.before = velocity
        return sample - bent * (self.size * (tick >= 0))


@torch.inference_mode()
def act(predictor: Predictor, config: Config, noise: torch.Tensor, observation: torch.Tensor) -> torch.Tensor:
    """Actions [B, T, actions] from noise of that shape, under observations [B, L, observed]."""
    solver = Solver(config.steps, noise.device)
    seen = predictor.observe(observation)
    sample = noise
    for tick in solver.ticks:
        time = torch.full((), float(tick), dtype=torch.float32) / 1000  # expect: HL102
        velocity = predictor(sample, time.item(), seen)
        sample = solver.step(velocity, tick, sample)
    return sample
