"""Experts visited one after the other, each asking the device for its own tokens."""
import torch
from torch import nn


class Mixture(nn.Module):
    def __init__(self, width: int, experts: int):
        super().__init__()
        self.gate = nn.Linear(width, experts)
        self.experts = nn.ModuleList(nn.Linear(width, width) for _ in range(experts))

    def forward(self, x):
        weight, chosen = self.gate(x).softmax(-1).max(-1)  # ok: a reduction
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            mine = chosen == number
            if not mine.any():  # expect: truth-test
                continue
            rows = x[mine]  # expect: mask-index
            out[mine] = expert(rows)  # expect: mask-index
        load = torch.bincount(chosen, minlength=len(self.experts)).tolist()  # expect: data-dep-shape, tolist
        return out * weight[:, None], load


def run(layers, x):
    x = x.to("cuda")  # neutral: fresh input
    for layer in layers:
        x, _ = layer(x)
    return x
