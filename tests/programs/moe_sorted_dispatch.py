"""Experts fed by one sort: no size depends on the data."""
import torch
import torch.nn.functional as F
from torch import nn


class Mixture(nn.Module):
    def __init__(self, width: int, experts: int, room: int):
        super().__init__()
        self.gate = nn.Linear(width, experts)
        self.up = nn.Parameter(torch.randn(experts, width, width))
        self.experts, self.room = experts, room

    def forward(self, x):
        chosen = self.gate(x).argmax(-1)
        hot = F.one_hot(chosen, num_classes=self.experts)  # ok: the count is given
        place = (hot.cumsum(0) * hot).sum(-1) - 1
        fits = place < self.room
        slot = torch.where(fits, chosen * self.room + place, self.experts * self.room)  # ok: three arguments
        buffer = x.new_zeros(self.experts * self.room + 1, x.shape[1])  # ok: device fill
        buffer = buffer.index_copy(0, slot, x)  # ok: static size
        out = torch.bmm(buffer[:-1].view(self.experts, self.room, -1), self.up).flatten(0, 1)
        back = torch.cat([out, out.new_zeros(1, out.shape[1])]).index_select(0, slot)
        wide = chosen.repeat_interleave(2)  # ok: a Python count
        lost = torch.count_nonzero(~fits)  # ok: a reduction
        first = torch.nonzero_static(fits, size=4)  # ok: a size is given
        order = torch.argsort(chosen, stable=True)  # ok: as long as its input
        return torch.where(fits[:, None], back, x), (wide, lost, first, order)


def run(layers, x):
    x = x.to("cuda")  # neutral: fresh input
    for layer in layers:
        x, _ = layer(x)
    return x
