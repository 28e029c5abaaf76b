"""Window attention that makes its index tables from Python lists in each call."""
import torch
from torch import nn


class Window(nn.Module):
    def __init__(self, width: int, side: int):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(side * side, width))
        self.side = side
        self.register_buffer("fixed", torch.arange(side), persistent=False)  # ok: built once

    def forward(self, x):
        order = torch.tensor(list(range(self.side)), device=x.device)  # expect: host-upload
        here = torch.arange(self.side).to(x.device)  # expect: host-upload
        there = torch.arange(self.side, device=x.device)  # ok: made on the device
        odd = self.bias[[1, 3, 5]]  # expect: host-upload
        even = self.bias[0:6:2]  # ok: a slice
        table = self.bias[order + here + there - self.fixed]  # ok: a device index
        hit = torch.zeros(self.side, device=x.device)
        hit[there] = 1.0  # expect: host-upload
        hit.index_fill_(0, there, 2.0)  # ok: the number is a kernel argument
        return x + odd.sum(0) + even.sum(0) + table.sum(0) + hit.sum()


def run(blocks, x):
    x = x.cuda()  # neutral: fresh input
    for block in blocks:
        x = block(x)
    return x
