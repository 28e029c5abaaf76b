"""The flow UniPC solver of many video pipelines: orders one to three over a schedule on the device, guidance by two forwards a step."""
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
    steps: int = 5
    order: int = 2
    shift: float = 5.0
    guidance: float = 5.0
    device: str = "cuda"
    dtype: torch.dtype = torch.float32


class Block(nn.Module):
    """Self-attention, cross-attention to the text and a feed-forward layer; the time modulates the first and the last."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width, self.heads = config.width, config.heads
        self.norm = nn.LayerNorm(width, elementwise_affine=False, eps=1e-6)
        self.text_norm = nn.LayerNorm(width, eps=1e-6)
        self.modulation = nn.Linear(width, 6 * width)
        self.projections = nn.ModuleList(nn.Linear(width, width) for _ in range(4))
        self.text_projections = nn.ModuleList(nn.Linear(width, width) for _ in range(4))
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU("tanh"), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor, text: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        shift, scale, gate, feed_shift, feed_scale, feed_gate = self.modulation(time)[:, None].chunk(6, dim=-1)
        normed = self.norm(x) * (1 + scale) + shift
        x = x + gate * self.attend(normed, normed, self.projections)
        x = x + self.attend(self.text_norm(x), text, self.text_projections)
        return x + feed_gate * self.feed(self.norm(x) * (1 + feed_scale) + feed_shift)

    def attend(self, x: torch.Tensor, context: torch.Tensor, projections: nn.ModuleList) -> torch.Tensor:
        to_query, to_key, to_value, to_out = projections
        parts = (to_query(x), to_key(context), to_value(context))
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        return to_out(F.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2))


class Transformer(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        half = config.width // 2
        self.frequencies = torch.exp(-math.log(10_000.0) * torch.arange(half, device=config.device) / half)  # stays float32
        self.time = nn.Sequential(nn.Linear(config.width, config.width), nn.SiLU(), nn.Linear(config.width, config.width), nn.SiLU())
        self.text = nn.Linear(config.text_width, config.width)
        self.patches = nn.Linear(config.channels, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.blocks))
        self.head = nn.Linear(config.width, config.channels)
        self.to(config.device, config.dtype)

    def forward(self, x: torch.Tensor, timestep: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        """`text` is what `self.text` made of the prompt, once for the request."""
        angles = timestep[:, None].float() * self.frequencies
        time = self.time(torch.cat((angles.cos(), angles.sin()), dim=-1).to(x.dtype))
        hidden = self.patches(x)
        for block in self.blocks:
            hidden = block(hidden, text, time)
        return self.head(hidden)


class FlowUniPC:
    """The solver of one request. Ratios and right sides are stacked on the device; small systems have their solution as a literal."""

    def __init__(self, config: Config, device: torch.device) -> None:
        self.order = config.order
        even = torch.linspace(0.999, 0.0, config.steps + 1, device=device)
        self.sigmas = config.shift * even / (1 + (config.shift - 1) * even)
        self.alphas = 1 - self.sigmas
        self.lambdas = torch.log(self.alphas) - torch.log(self.sigmas)
        self.timesteps = self.sigmas[:-1] * 1000.0
        self.clean: list[torch.Tensor] = []  # the model's guesses at the clean sample, newest last
        self.before = torch.empty(0, device=device)  # the sample that the last prediction started from

    def step(self, velocity: torch.Tensor, index: int, sample: torch.Tensor) -> torch.Tensor:
        guess = sample - self.sigmas[index] * velocity
        if index > 0:
            sample = self.correct(guess, index, sample, min(self.order, index))
        self.clean = [*self.clean[1 - self.order :], guess] if self.order > 1 else [guess]
        self.before = sample
        return self.predict(index, sample, min(self.order, index + 1, len(self.timesteps) - index))

    def equations(self, start: int, end: int, order: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Positions of the guesses before `start` in steps from it to `end`, the right side for their weights, and the first integral."""
        step = self.lambdas[end] - self.lambdas[start]
        earlier = self.lambdas[start - order + 1 : start].flip(0)
        positions = torch.cat(((earlier - self.lambdas[start]) / step, torch.ones_like(step)[None]))
        first = torch.expm1(-step)
        phi, right, factorial = first / -step - 1, [], 1
        for power in range(1, order + 1):
            right.append(phi * factorial / first)
            factorial *= power + 1
            phi = phi / -step - 1 / factorial
        return positions, torch.stack(right), first

    def predict(self, index: int, sample: torch.Tensor, order: int) -> torch.Tensor:
        positions, right, first = self.equations(index, index + 1, order)
        newest, alpha = self.clean[-1], self.alphas[index + 1]
        result = self.sigmas[index + 1] / self.sigmas[index] * sample - alpha * first * newest
        if order == 1:
            return result
        if order == 2:
            weights = torch.tensor([0.5], dtype=sample.dtype, device=sample.device)  # expect: HL201
        else:
            powers = torch.stack([positions[:-1] ** power for power in range(order - 1)])
            weights = torch.linalg.solve(powers, right[:-1]).to(sample.dtype)  # expect: HL114
        return result - alpha * first * torch.einsum("k,kbtc->btc", weights, self.slopes(positions))

    def correct(self, guess: torch.Tensor, index: int, sample: torch.Tensor, order: int) -> torch.Tensor:
        positions, right, first = self.equations(index - 1, index, order)
        newest, alpha = self.clean[-1], self.alphas[index]
        if order == 1:
            weights = torch.tensor([0.5], dtype=sample.dtype, device=sample.device)  # expect: HL201
        else:
            powers = torch.stack([positions**power for power in range(order)])
            weights = torch.linalg.solve(powers, right).to(sample.dtype)  # expect: HL114
        bent = weights[-1] * (guess - newest)
        if order > 1:
            bent = bent + torch.einsum("k,kbtc->btc", weights[:-1], self.slopes(positions))
        return self.sigmas[index] / self.sigmas[index - 1] * self.before - alpha * first * newest - alpha * first * bent

    def slopes(self, positions: torch.Tensor) -> torch.Tensor:
        """How the guess changed from each earlier one to the newest, for each unit of position."""
        count = positions.shape[0] - 1
        earlier = torch.stack(self.clean[-2 : -2 - count : -1])
        return (earlier - self.clean[-1]) / positions[:-1].to(earlier.dtype)[:, None, None, None]


@torch.inference_mode()
def sample_clean(transformer: Transformer, config: Config, noise: torch.Tensor, text: torch.Tensor, negative: torch.Tensor) -> torch.Tensor:
    """Latents [B, T, channels] from noise of that shape, under two texts [B, L, text_width]."""
    solver = FlowUniPC(config, noise.device)
    wanted_text, unwanted_text = transformer.text(text), transformer.text(negative)
    sample = noise
    for index, timestep in enumerate(solver.timesteps):
        ticks = timestep.expand(sample.shape[0])
        wanted, unwanted = transformer(sample, ticks, wanted_text), transformer(sample, ticks, unwanted_text)
        sample = solver.step(unwanted + config.guidance * (wanted - unwanted), index, sample)
    return sample
