"""GLM-Image's denoiser: texts of several lengths in a batch, and tokens of a prior that the branch without condition drops by a mask."""
from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812  the name that everybody gives it
from torch import nn


def where_masked(mask, new, old):
    """`old` with `new` where the mask is true; as in `old[mask] = new[mask]`, the mask may have fewer dimensions."""
    return torch.where(mask.reshape(mask.shape + (1,) * (old.dim() - mask.dim())), new, old)


@dataclass(frozen=True)
class Config:
    channels: int = 4
    width: int = 32
    heads: int = 4
    blocks: int = 2
    text_width: int = 16
    tokens: int = 64
    steps: int = 3
    guidance: float = 1.5
    device: str = "cuda"
    dtype: torch.dtype = torch.float32


class Block(nn.Module):
    """Self-attention over text and image, then a feed-forward layer, both modulated by the time."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width, self.heads = config.width, config.heads
        self.norm = nn.LayerNorm(width, elementwise_affine=False, eps=1e-5)
        self.modulation = nn.Linear(width, 6 * width)
        self.qkv = nn.Linear(width, 3 * width)
        self.query_norm = nn.LayerNorm(width // config.heads, elementwise_affine=False, eps=1e-5)
        self.out = nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU("tanh"), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        shift, scale, gate, feed_shift, feed_scale, feed_gate = self.modulation(time)[:, None].chunk(6, dim=-1)
        x = x + gate * self.attend(self.norm(x) * (1 + scale) + shift)
        return x + feed_gate * self.feed(self.norm(x) * (1 + feed_scale) + feed_shift)

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        attended = F.scaled_dot_product_attention(self.query_norm(query), self.query_norm(key), value)
        return self.out(attended.transpose(1, 2).flatten(2))


class Transformer(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        half = config.width // 2
        self.frequencies = torch.exp(-math.log(10_000.0) * torch.arange(half, device=config.device) / half)  # stays float32
        self.time = nn.Sequential(nn.Linear(config.width, config.width), nn.SiLU(), nn.Linear(config.width, config.width), nn.SiLU())
        self.text = nn.Linear(config.text_width, config.width)
        self.prior = nn.Embedding(config.tokens, config.width)
        self.patches = nn.Linear(config.channels, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.blocks))
        self.head = nn.Linear(config.width, config.channels)
        self.to(config.device, config.dtype)

    def forward(
        self,
        x: torch.Tensor,
        timestep: torch.Tensor,
        text: torch.Tensor,
        text_mask: torch.Tensor,
        prior: torch.Tensor,
        drop: torch.Tensor,
        text_mask_sums: list[int] | None = None,
    ) -> torch.Tensor:
        """`x` [B, N, channels] beside one token of the prior for each patch, `prior` [B, N]; `drop` [B, N] is true where it is left out.

        `text` [B, L, width] is what `self.text` made of the prompts, once for the request; `text_mask` [B, L] is 1 where it is one.
        """
        samples = []
        if text_mask_sums is None:
            text_mask_sums = text_mask.flatten(1).sum(1).tolist()
        for index in range(x.shape[0]):  # each alone, with its own text: no kernel here takes texts of several lengths
            rows = slice(index, index + 1)
            length = int(text_mask_sums[index])
            samples.append(self.denoised(x[rows], timestep[rows], text[rows, :length], prior[rows], drop[rows]))
        return torch.cat(samples)

    def denoised(
        self, x: torch.Tensor, timestep: torch.Tensor, text: torch.Tensor, prior: torch.Tensor, drop: torch.Tensor
    ) -> torch.Tensor:
        embedded = self.prior(prior)
        embedded.copy_(where_masked(drop, embedded * 0.0, embedded))
        angles = timestep[:, None].float() * self.frequencies
        time = self.time(torch.cat((angles.cos(), angles.sin()), dim=-1).to(x.dtype))
        hidden = torch.cat((text, self.patches(x) + embedded), dim=1)
        for block in self.blocks:
            hidden = block(hidden, time)
        return self.head(hidden[:, text.shape[1] :])


@torch.inference_mode()
def denoise(
    transformer: Transformer,
    config: Config,
    noise: torch.Tensor,
    prompts: torch.Tensor,
    text_mask: torch.Tensor,
    prior: torch.Tensor,
) -> torch.Tensor:
    """Latents [B, N, channels] from noise of that shape, guided away from what the model makes without the prior."""
    sigmas = torch.linspace(1.0, 0.0, config.steps + 1, device=noise.device)
    keep = torch.full_like(prior, False, dtype=torch.bool)
    drop = torch.full_like(prior, True, dtype=torch.bool)
    text = transformer.text(prompts)
    sample = noise
    text_mask_sums = text_mask.flatten(1).sum(1).tolist()
    for index in range(config.steps):
        timestep = (sigmas[index] * 1000.0).expand(sample.shape[0])
        wanted = transformer(sample, timestep, text, text_mask, prior, keep, text_mask_sums=text_mask_sums)
        unwanted = transformer(sample, timestep, text, text_mask, prior, drop, text_mask_sums=text_mask_sums)
        velocity = unwanted + config.guidance * (wanted - unwanted)
        sample = sample + (sigmas[index + 1] - sigmas[index]) * velocity
    return sample
