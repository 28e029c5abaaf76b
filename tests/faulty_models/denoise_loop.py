"""A denoising loop that looks clean: what waits and uploads in every step is in the schedule, another file."""
from __future__ import annotations

import torch
from denoise_schedule import Schedule
from torch import nn


class Denoiser(nn.Module):
    def __init__(self, width: int = 8, device: str = "cuda") -> None:
        super().__init__()
        self.body = nn.Linear(width + 1, width, device=device)

    def forward(self, sample: torch.Tensor, timestep: torch.Tensor) -> torch.Tensor:
        time = timestep.to(sample.dtype).expand(sample.shape[0], 1)
        return self.body(torch.cat((sample, time), dim=1))


@torch.inference_mode()
def denoise(model: Denoiser, sample: torch.Tensor, steps: int = 6) -> torch.Tensor:
    schedule = Schedule(steps, sample.device)
    for timestep in schedule.timesteps:
        sample = schedule.step(model(sample, timestep), timestep, sample)
    return sample
