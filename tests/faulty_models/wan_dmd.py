"""The distilled stage of Wan (FastWan): a short list of timesteps, one of two experts for each, and a check that latents are numbers."""
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
    text_width: int = 16
    steps: int = 3
    boundary: int | None = None
    device: str = "cuda"
    dtype: torch.dtype = torch.float32

    @property
    def timesteps(self) -> Sequence[int]:
        return [1000 - 1000 * step // self.steps for step in range(self.steps)]


class Block(nn.Module):
    """Self-attention, cross-attention to the text and a feed-forward layer; the time modulates the first and the last."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width, self.heads = config.width, config.heads
        self.norm = nn.LayerNorm(width, elementwise_affine=False, eps=1e-6)
        self.text_norm = nn.LayerNorm(width, eps=1e-6)
        self.modulation = nn.Parameter(torch.randn(6, width) / width**0.5)
        self.projections = nn.ModuleList(nn.Linear(width, width) for _ in range(4))
        self.text_projections = nn.ModuleList(nn.Linear(width, width) for _ in range(4))
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU("tanh"), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor, text: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        shift, scale, gate, feed_shift, feed_scale, feed_gate = (self.modulation + time[:, None]).unbind(dim=1)
        normed = self.norm(x) * (1 + scale[:, None]) + shift[:, None]
        x = x + gate[:, None] * self.attend(normed, normed, self.projections)
        x = x + self.attend(self.text_norm(x), text, self.text_projections)
        return x + feed_gate[:, None] * self.feed(self.norm(x) * (1 + feed_scale[:, None]) + feed_shift[:, None])

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


class Stage:
    """Latents are guessed clean at each timestep and noised to the next one. With a boundary, an expert of its own does the late ones."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.early = Transformer(config)
        self.late = Transformer(config) if config.boundary is not None else None

    @torch.inference_mode()
    def __call__(self, noise: torch.Tensor, prompt: torch.Tensor, seed: int = 0) -> torch.Tensor:
        """Latents [B, T, channels] from noise of that shape, under a text [B, L, text_width]."""
        config = self.config
        timesteps = torch.tensor(config.timesteps, dtype=torch.long, device=noise.device)
        levels = torch.arange(1001, device=noise.device) / 1000.0
        following = levels[F.pad(timesteps[1:], (0, 1))].to(noise.dtype)
        generator = torch.Generator(noise.device).manual_seed(seed)
        early_text = self.early.text(prompt)
        late_text = self.late.text(prompt) if self.late is not None else early_text
        latents = noise
        for index, t in enumerate(timesteps):
            t_int = int(t.item())  # expect: HL101
            expert, text = self.early, early_text
            if self.late is not None and config.boundary is not None and t_int < config.boundary:
                expert, text = self.late, late_text
            assert not torch.isnan(latents).any(), "the latents hold NaN"  # expect: HL103
            velocity = expert(latents, t.expand(latents.shape[0]), text)
            clean = latents - levels[timesteps[index : index + 1]].to(latents.dtype) * velocity
            fresh = torch.empty_like(clean).normal_(generator=generator)
            latents = (1 - following[index]) * clean + following[index] * fresh
        return latents
