"""Casts, tests, ranges and slices of sizes: host numbers, however often they are asked for."""
import math

import torch
from torch import nn


class Patch(nn.Module):
    def __init__(self, width: int, side: int):
        super().__init__()
        self.proj = nn.Linear(width, width)
        self.side = int(side)  # ok: Python number
        self.pos = nn.Parameter(torch.zeros(1, 64, width))

    def forward(self, x: torch.Tensor, scale: float = 1.0, mask: torch.Tensor | None = None):
        batch, length, width = x.shape  # ok: shape
        rows = int(math.sqrt(length))  # ok: Python numbers
        if length > self.side and x.dtype == torch.float32 and x.is_cuda:  # ok: metadata
            x = x[:, : min(length, self.side)]  # ok: Python numbers
        if mask is not None and mask.dim() in (2, 3) and mask.any is not None:  # ok: metadata
            x = x * mask.to(x.dtype).view(batch, -1, 1)
        pad = torch.zeros(batch, max(0, self.side - x.size(1)), width, device=x.device)  # ok: sizes
        x = torch.cat([x, pad], 1) + self.pos[:, : x.shape[1] + pad.shape[1]]  # ok: sizes
        parts = [self.proj(x[:, i]) for i in range(0, x.shape[1], max(rows, 1))]  # ok: sizes
        text = f"{tuple(x.shape)} on {x.device} as {x.dtype}"  # ok: metadata
        return torch.stack(parts, 1) * float(scale), text, bool(len(parts))  # ok: Python values


def run(blocks: nn.ModuleList, x):
    x = x.to("cuda")  # neutral: fresh input
    for number, block in enumerate(blocks):
        x, text, some = block(x, 1.0 / (number + 1))
        assert some and text and x.numel()  # ok: Python values
    return x
