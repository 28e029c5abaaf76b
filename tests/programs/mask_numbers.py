"""Masks that are written with numbers or used as factors: torch waits for none of them."""
import torch
from torch import nn


class Scores(nn.Module):
    def __init__(self, side: int):
        super().__init__()
        self.register_buffer("causal", torch.ones(side, side, dtype=torch.bool).triu(1), persistent=False)
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, q, k, pad):
        scores = q @ k.mT * self.scale  # ok: a device scalar as a factor
        scores[..., self.causal] = float("-inf")  # ok: one mask and a number
        scores[pad] = -1e4  # ok: mask and number
        scores = scores.masked_fill(pad[..., None], -1e4)  # ok: number
        scores = torch.where(self.causal, -1e4, scores)  # ok: three arguments
        scores = torch.where(scores > self.scale, self.scale, scores)  # ok: device scalar
        scores[:, :, 0] = 0.0  # ok: slices and a host integer
        scores[..., :1] += 1.0  # ok: slice
        weight = scores.softmax(-1) * ~pad[..., None]  # ok: a mask as factor
        return weight.clamp(max=self.scale), (weight * pad[..., None]).sum()  # ok: clamp takes a tensor


def run(blocks, x, lengths: list[int]):
    x = x.to("cuda")  # neutral: fresh input
    pad = torch.zeros(len(lengths), max(lengths), dtype=torch.bool, device="cuda")  # ok: host numbers
    for row, length in enumerate(lengths):
        pad[row, length:] = True  # ok: slices and a number
    for block in blocks:
        x = block(x, x, pad)
    return x
