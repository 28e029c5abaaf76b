"""Schedulers: the times of one that keeps its tables on the host are the host's, those of one that moves them up are the device's."""
import math

import torch


class HostScheduler:
    def set_timesteps(self, count: int):
        self.sigmas = torch.linspace(1.0, 0.0, count)
        self.timesteps = self.sigmas * 1000

    def step(self, model_output, timestep, sample):
        if isinstance(timestep, torch.Tensor):
            timestep = timestep.cpu()  # ok: out of its own table
        index = torch.argmin((self.timesteps - timestep).abs())
        if model_output.mean() > 1:  # expect: HL103
            sample = sample + 1
        return sample + model_output * self.sigmas[index]

    def scale_model_input(self, sample, sigma: torch.Tensor):
        return sample * sigma.item()  # ok: out of its own table


class DeviceScheduler:
    def set_timesteps(self, count: int, device: str):
        self.sigmas = torch.linspace(1.0, 0.0, count, device=device)
        self.timesteps = self.sigmas * 1000

    def step(self, model_output, timestep, sample):
        if isinstance(timestep, torch.Tensor):
            timestep = timestep.cpu()  # expect: HL104
        return sample + model_output * timestep

    def scale_model_input(self, sample, sigma: torch.Tensor):
        return sample * sigma.item()  # expect: HL101


class FlowMatchScheduler:
    def __init__(self, shift: float):
        self.sigmas = torch.arange(10) * shift

    def step(self, model_output, sigma, sample):
        return sample + model_output * float(sigma)  # ok: out of its own table


class MixedScheduler:
    def set_timesteps(self, count: int, device: str):
        self.sigmas = torch.linspace(1.0, 0.0, count)
        self.timesteps = torch.arange(count, device=device)

    def step(self, model_output, timestep, sigma, sample):
        if timestep == 0:  # expect: HL103
            return sample
        return sample * float(sigma)  # ok: the sigmas are the host's


class ScaledScheduler:
    def __init__(self, shift, train_steps):
        self.shift = shift
        self.train_steps = train_steps
        self.timesteps: torch.Tensor | None = None

    def set_timesteps(self, count: int):
        self.sigmas = torch.linspace(1.0, 0.0, count)
        if self.shift > 2:
            self.sigmas = torch.flip(self.sigmas, dims=[0])
        if self.shift > 1:
            mu = self.shift_of(count)
            self.sigmas = math.exp(mu) / (math.exp(mu) + (1 / self.sigmas - 1))
        else:
            self.sigmas = self.shift * self.sigmas / (1 + (self.shift - 1) * self.sigmas)
        if count > 3:
            self.sigmas = 1 - self.sigmas
        self.timesteps = self.sigmas * self.train_steps

    def step(self, model_output, timestep, sample):
        if isinstance(timestep, torch.Tensor):
            timestep = timestep.cpu()  # ok: out of its own table, which is scaled in place
        return sample + model_output * timestep
