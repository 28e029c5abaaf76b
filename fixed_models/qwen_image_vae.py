"""Qwen-Image's autoencoder around its denoiser: condition images are encoded one by one, and a video is decoded chunk by chunk.

The mean and the deviation of each latent channel are numbers of the configuration.
"""
from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812  the name that everybody gives it
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
    width: int = 16
    means: tuple[float, ...] = (-0.7571, 0.2503, -0.9121, 0.1234)
    deviations: tuple[float, ...] = (2.8184, 1.4541, 2.3275, 2.6558)
    chunk: int = 2
    device: str = "cuda"
    dtype: torch.dtype = torch.float32


class Encoder(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.first = nn.Conv3d(3, config.width, 3, padding=1)
        self.norm = nn.GroupNorm(4, config.width)
        self.last = nn.Conv3d(config.width, config.channels, (1, 2, 2), stride=(1, 2, 2))

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.last(F.silu(self.norm(self.first(pixels))))


class Decoder(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.first = nn.Conv3d(config.channels, config.width, 3, padding=1)
        self.norm = nn.GroupNorm(4, config.width)
        self.last = nn.ConvTranspose3d(config.width, 3, (1, 2, 2), stride=(1, 2, 2))

    def forward(self, latents: torch.Tensor) -> torch.Tensor:
        return self.last(F.silu(self.norm(self.first(latents))))


class Autoencoder(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.encoder, self.decoder = Encoder(config), Decoder(config)
        self.to(config.device, config.dtype)

    def statistics(self, latents: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and one over the deviation, [1, channels, 1, 1, 1], divided in float32 and then cast."""
        mean = kept_table(tuple(self.config.means), latents.device).view(1, -1, 1, 1, 1).to(latents.device, latents.dtype)
        scale = 1.0 / kept_table(tuple(self.config.deviations), device=latents.device).view(1, -1, 1, 1, 1)
        return mean, scale.to(latents.dtype)

    @torch.inference_mode()
    def encode(self, images: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Normed latents of each image [1, 3, frames, height, width]."""
        encoded = []
        for image in images:
            latents = self.encoder(image)
            mean = kept_table(tuple(self.config.means), latents.device, latents.dtype).view(1, -1, 1, 1, 1)
            deviation = kept_table(tuple(self.config.deviations), latents.device, latents.dtype).view(1, -1, 1, 1, 1)
            encoded.append((latents - mean) / deviation)
        return encoded

    @torch.inference_mode()
    def decode(self, latents: torch.Tensor) -> torch.Tensor:
        """Pixels [B, 3, frames, height, width] of normed latents, a few frames at a time."""
        pixels = []
        for chunk in latents.split(self.config.chunk, dim=2):
            mean, scale = self.statistics(chunk)
            pixels.append(self.decoder(chunk / scale + mean))
        return torch.cat(pixels, dim=2)
