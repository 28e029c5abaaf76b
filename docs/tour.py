"""Makes latents with a distilled video model of random weights, and prints a digest of all their bits: `python run.py [cpu|cuda]`."""
from __future__ import annotations

import hashlib
import sys

import torch
from wan_dmd import Config, Stage


def main(device: str) -> None:
    torch.manual_seed(0)
    config = Config(steps=8, device=device)
    stage = Stage(config)
    noise, prompt = torch.randn(2, 16, config.channels), torch.randn(2, 3, config.text_width)
    latents = stage(noise.to(device), prompt.to(device))
    bits = bytes(latents.cpu().view(torch.uint8).flatten().tolist())
    print(f"latents {list(latents.shape)}, bits {hashlib.sha256(bits).hexdigest()[:16]}")


main(*sys.argv[1:] or ("cuda",))
