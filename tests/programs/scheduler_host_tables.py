"""A scheduler that keeps a host copy of its tables beside the device copy."""
import math

import torch


class Scheduler:
    def __init__(self, count: int):
        self.count = count
        self.index = 0

    def set_timesteps(self, device):
        grid = [math.cos(i / self.count * math.pi / 2) for i in range(self.count + 1)]  # ok: Python floats
        host = torch.tensor(grid)
        self.sigmas = host.tolist()  # ok: host tensor, once per request
        self.table = host.to(device)  # ok: once per request
        self.index = 0

    def step(self, noise, x):
        i = self.index
        sigma, following = self.sigmas[i], self.sigmas[i + 1]  # ok: Python list
        self.index += 1
        if following == 0.0:  # ok: Python floats
            return x - noise * self.table[i]  # ok: host integer
        ratio = math.log(max(sigma, 1e-8) / following)  # ok: Python floats
        scale = torch.full((x.shape[0], 1), ratio, device=x.device)  # ok: a Python number
        return x + noise * (self.table[i + 1] - self.table[i]) * scale.clamp(min=-4.0, max=4.0)


@torch.inference_mode()
def sample(dit, x, count: int):
    scheduler = Scheduler(count)
    scheduler.set_timesteps("cuda")
    for i in range(count):
        x = scheduler.step(dit(x, scheduler.table[i : i + 1]), x)  # ok: slice with host integers
    return x.clamp(-1, 1).cpu()  # ok: the result of the request
