"""The schedule of `denoise_loop`: it searches its own table on the device in every step, and uploads a number that it had all along."""
from __future__ import annotations

import torch


class Schedule:
    def __init__(self, steps: int, device: torch.device) -> None:
        self.timesteps = torch.linspace(1.0, 0.0, steps + 1, device=device)[:-1]
        self.sizes = [1.0 / steps] * steps

    def step(self, noise: torch.Tensor, timestep: torch.Tensor, sample: torch.Tensor) -> torch.Tensor:
        index = (self.timesteps == timestep).nonzero()[0].item()  # expect: HL101, HL110
        size = torch.tensor(self.sizes[index], device=sample.device)  # expect: HL201
        return sample - noise * size
