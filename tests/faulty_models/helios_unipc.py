"""UniPC over flow matching, as Helios samples: predictor and corrector of up to three orders, their weights worked out at each step."""
from __future__ import annotations

import math
from collections.abc import Sequence
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
    steps: int = 6
    order: int = 2
    device: str = "cuda"
    dtype: torch.dtype = torch.float32


class Block(nn.Module):
    """Self-attention and a feed-forward layer, modulated by the time."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width, self.heads = config.width, config.heads
        self.norm = nn.LayerNorm(width, elementwise_affine=False, eps=1e-6)
        self.modulation = nn.Linear(width, 6 * width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU("tanh"), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        shift, scale, gate, feed_shift, feed_scale, feed_gate = self.modulation(time)[:, None].chunk(6, dim=-1)
        x = x + gate * self.attend(self.norm(x) * (1 + scale) + shift)
        return x + feed_gate * self.feed(self.norm(x) * (1 + feed_scale) + feed_shift)

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
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

    def forward(self, x: torch.Tensor, timestep: torch.Tensor) -> torch.Tensor:
        angles = timestep[:, None].float() * self.frequencies
        time = self.time(torch.cat((angles.cos(), angles.sin()), dim=-1).to(x.dtype))
        hidden = self.patches(x)
        for block in self.blocks:
            hidden = block(hidden, time)
        return self.head(hidden)


def expansion(hh: torch.Tensor, order: int) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """The first exponential integral over a step, and the right side of the equations for the weights."""
    first = torch.expm1(hh)
    phi = first / hh - 1
    right, factorial = [], 1
    for power in range(1, order + 1):
        right.append(phi * factorial / first)
        factorial *= power + 1
        phi = phi / hh - 1 / factorial
    return first, right


class UniPC:
    """The solver of one request; its schedule lies on the device."""

    def __init__(self, steps: int, order: int, device: torch.device) -> None:
        self.order = order
        sigmas = torch.linspace(0.999, 0.0, steps + 1, device=device)
        self.sigmas, self.alphas = sigmas, 1 - sigmas
        self.lambdas = torch.log(self.alphas) - torch.log(sigmas)
        self.timesteps = sigmas[:-1] * 1000.0
        self.clean: list[torch.Tensor] = []  # the model's guesses at the clean sample, newest last
        self.before = torch.empty(0, device=device)  # the sample that the last prediction started from

    def step(self, velocity: torch.Tensor, index: int, sample: torch.Tensor) -> torch.Tensor:
        guess = sample - self.sigmas[index] * velocity
        if index > 0:
            sample = self.correct(guess, index, sample, min(self.order, index))
        self.clean = [*self.clean[-self.order :], guess]
        self.before = sample
        last = len(self.timesteps) - index
        return self.predict(index, sample, min(self.order, index + 1, last))

    def ratios(self, index: int, start: int, order: int) -> tuple[list[torch.Tensor], torch.Tensor]:
        """How far back the earlier guesses lie, in steps of the current one, and that step."""
        step = self.lambdas[index] - self.lambdas[start]
        return [(self.lambdas[start - back] - self.lambdas[start]) / step for back in range(1, order)], step

    def predict(self, index: int, sample: torch.Tensor, order: int) -> torch.Tensor:
        following, newest = index + 1, self.clean[-1]
        found, step = self.ratios(following, index, order)
        slopes = self.slopes(newest, self.clean[:-1], found)
        rks = [*found, 1.0]
        positions = torch.tensor(rks, device=sample.device)  # expect: HL109
        first, right = expansion(-step, order)
        target = torch.tensor(right, device=sample.device)  # expect: HL109
        result = self.sigmas[following] / self.sigmas[index] * sample - self.alphas[following] * first * newest
        if not slopes:
            return result.to(sample.dtype)
        if order == 2:
            weights = torch.tensor([0.5], dtype=sample.dtype, device=sample.device)  # expect: HL201
        else:
            matrix = torch.stack([positions**power for power in range(order)])
            weights = torch.linalg.solve(matrix[:-1, :-1], target[:-1]).to(sample.dtype)  # expect: HL114
        bent = torch.einsum("k,kbtc->btc", weights, torch.stack(slopes))
        return (result - self.alphas[following] * first * bent).to(sample.dtype)

    def correct(self, guess: torch.Tensor, index: int, sample: torch.Tensor, order: int) -> torch.Tensor:
        start, newest = index - 1, self.clean[-1]
        found, step = self.ratios(index, start, order)
        slopes = self.slopes(newest, self.clean[:-1], found)
        rks = [*found, 1.0]
        positions = torch.tensor(rks, device=sample.device)  # expect: HL109
        first, right = expansion(-step, order)
        target = torch.tensor(right, device=sample.device)  # expect: HL109
        if order == 1:
            weights = torch.tensor([0.5], dtype=sample.dtype, device=sample.device)  # expect: HL201
        else:
            matrix = torch.stack([positions**power for power in range(order)])
            weights = torch.linalg.solve(matrix, target).to(sample.dtype)  # expect: HL114
        bent = weights[-1] * (guess - newest)
        if slopes:
            bent = bent + torch.einsum("k,kbtc->btc", weights[:-1], torch.stack(slopes))
        result = self.sigmas[index] / self.sigmas[start] * self.before - self.alphas[index] * first * newest
        return (result - self.alphas[index] * first * bent).to(sample.dtype)

    @staticmethod
    def slopes(newest: torch.Tensor, earlier: Sequence[torch.Tensor], ratios: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        return [(guess - newest) / ratio for guess, ratio in zip(reversed(earlier), ratios, strict=False)]


@torch.inference_mode()
def sample_clean(transformer: Transformer, config: Config, noise: torch.Tensor) -> torch.Tensor:
    """Latents [B, T, channels] from noise of that shape."""
    solver = UniPC(config.steps, config.order, noise.device)
    sample = noise
    for index, timestep in enumerate(solver.timesteps):
        velocity = transformer(sample, timestep.expand(sample.shape[0]))
        sample = solver.step(velocity, index, sample)
    return sample
