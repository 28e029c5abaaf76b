"""What code hangs on a tensor is no tensor, whoever made that one; the parts of a model's output are."""
import torch
from torch import nn


class Marked(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.register_buffer("table", torch.zeros(dim))

    def forward(self, x: torch.Tensor, encoder: nn.Module):
        fresh = torch.zeros(4, device=x.device)
        made = x.new_zeros(4, device=x.device)
        grown = fresh + 1
        for one in self.parameters():
            x = x[: one.shard]  # ok: what somebody noted on a parameter
        x = x[: self.weight.longest] + x[: self.table.longest]  # ok: noted on a parameter, on a buffer
        x = x[: fresh.longest] + x[: made.longest] + x[: grown.longest]  # ok: noted on what torch made
        return x[: encoder(fresh).longest]  # expect: HL107
