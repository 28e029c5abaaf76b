"""A graph layer that asks the edges for the number of nodes, in each layer and step."""
import torch
from torch import nn


class Conv(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.lin = nn.Linear(width, width)

    def forward(self, x, edges):
        src, dst = edges[0], edges[1]  # ok: views by host integers
        count = int(dst.max()) + 1  # expect: scalar-cast
        degree = torch.bincount(dst, minlength=count)  # expect: data-dep-shape
        proper = (src != dst).nonzero().squeeze(1)  # expect: nonzero
        message = self.lin(x).index_select(0, src.index_select(0, proper))  # ok: gathers on the device
        out = torch.zeros(x.shape[0], x.shape[1], device=x.device)
        out.index_add_(0, dst.index_select(0, proper), message)  # ok: static size
        alone = degree == 0
        return out / degree.clamp(min=1)[: x.shape[0], None], x[: len(alone)][alone]  # expect: mask-index


class Net(nn.Module):
    def __init__(self, width: int, depth: int):
        super().__init__()
        self.convs = nn.ModuleList(Conv(width) for _ in range(depth))

    def forward(self, x, edges):
        for conv in self.convs:
            x, _ = conv(x, edges)
        return x.relu()


def train(net: Net, graphs, opt):
    net.cuda()  # neutral: a module moved
    for batch in graphs.batches:
        edges = batch.edges.cuda()  # neutral: fresh input
        net(batch.x.cuda(), edges).mean().backward()  # neutral: fresh input
        opt.step()
        opt.zero_grad()
