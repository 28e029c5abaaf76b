"""SenseNova-U1's image branch: the time runs from 0 to 1 on the device, and guidance is worth its second forward only in a window of it."""
from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812  the name that everybody gives it
from torch import nn

KEPT = {}


def kept(make, *key):
    """`make(*key)`, made once for each key and then shared: nothing may write into it. A compiler and a capture make their own."""
    captures = torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()
    if captures or torch.compiler.is_compiling():
        return make(*key)
    name = (make.__code__, *key, *map(type, key))
    found = KEPT.get(name)
    if found is None:
        if len(KEPT) >= 64:
            KEPT.clear()
        with torch.inference_mode(False):
            found = KEPT[name] = make(*key)
    return found


@dataclass(frozen=True)
class Config:
    channels: int = 4
    width: int = 32
    heads: int = 4
    blocks: int = 2
    text_width: int = 16
    steps: int = 10
    guidance: float = 4.0
    window: tuple[float, float] = (0.1, 0.9)
    device: str = "cuda"
    dtype: torch.dtype = torch.float32


class Block(nn.Module):
    """Self-attention over text and image, then a feed-forward layer; the time is added to the image."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width, self.heads = config.width, config.heads
        self.norm = nn.RMSNorm(width, eps=1e-6)
        self.feed_norm = nn.RMSNorm(width, eps=1e-6)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate, self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attend(self.norm(x))
        normed = self.feed_norm(x)
        return x + self.down(F.silu(self.gate(normed)) * self.up(normed))

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        return self.out(F.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2))


class TimeEmbedding(nn.Module):
    """Sines and cosines of the time, by frequencies that the host computes (their last bits differ from the device's)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.layers = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, time: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        half = self.width // 2
        frequencies = kept(
            lambda half, device: torch.exp(-math.log(10_000.0) * torch.arange(half, dtype=torch.float32) / half).to(device),
            half, time.device,
        )
        angles = 1000.0 * time[:, None] * frequencies
        return self.layers(torch.cat((angles.cos(), angles.sin()), dim=-1).to(dtype))


class Transformer(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.time = TimeEmbedding(config.width)
        self.text = nn.Linear(config.text_width, config.width)
        self.patches = nn.Linear(config.channels, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.blocks))
        self.head = nn.Linear(config.width, config.channels)
        self.to(config.device, config.dtype)

    def forward(self, x: torch.Tensor, time: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        """`text` is what `self.text` made of the prompt, once for the request."""
        image = self.patches(x) + self.time(time, x.dtype)[:, None]
        hidden = torch.cat((text, image), dim=1)
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(hidden[:, text.shape[1] :])


@torch.inference_mode()
def denoise(transformer: Transformer, config: Config, noise: torch.Tensor, prompt: torch.Tensor, negative: torch.Tensor) -> torch.Tensor:
    """Latents [B, T, channels] from noise of that shape, under two texts [B, L, text_width]."""
    low, high = config.window
    times = torch.linspace(0.0, 1.0, config.steps + 1, device=noise.device)
    text, unwanted_text = transformer.text(prompt), transformer.text(negative)
    sample = noise
    ticks = times[:-1]
    ticks_inside = (ticks >= low).tolist()
    ticks_inside_2 = (ticks <= high).tolist()
    for index, t in enumerate(ticks):
        velocity = transformer(sample, t.expand(sample.shape[0]), text)
        if ticks_inside[index] and ticks_inside_2[index] and config.guidance > 1:
            unwanted = transformer(sample, t.expand(sample.shape[0]), unwanted_text)
            velocity = unwanted + config.guidance * (velocity - unwanted)
        sample = sample + (times[index + 1] - t) * velocity
    return sample
