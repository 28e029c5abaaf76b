"""Qwen-Image's autoencoder around its denoiser: condition images are encoded one by one, and a video is decoded chunk by chunk.

The mean and the deviation of each latent channel are numbers of the configuration.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812  the name that everybody gives it
from torch import nn


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
        mean = torch.tensor(self.config.means).view(1, -1, 1, 1, 1).to(latents.device, latents.dtype)  # expect at request: HL202
        scale = 1.0 / torch.tensor(self.config.deviations, device=latents.device).view(1, -1, 1, 1, 1)  # expect at request: HL201
        return mean, scale.to(latents.dtype)

    @torch.inference_mode()
    def encode(self, images: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Normed latents of each image [1, 3, frames, height, width]."""
        encoded = []
        for image in images:
            latents = self.encoder(image)
            mean = latents.new_tensor(self.config.means).view(1, -1, 1, 1, 1)  # expect at request: HL201
            deviation = latents.new_tensor(self.config.deviations).view(1, -1, 1, 1, 1)  # expect at request: HL201
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
