"""Graph layers that are told their sizes, and a sampler on the host that may look at its data."""
import torch
from torch import nn


class Sampler:
    """Runs in loader workers, on host tensors."""

    def __init__(self, edges):
        self.edges = torch.as_tensor(edges).cpu()
        self.degree = torch.bincount(self.edges[1])  # ok: host tensor

    def draw(self, seeds: list[int]):
        wanted = torch.isin(self.edges[1], torch.tensor(seeds))
        kept = self.edges[:, wanted]  # ok: host mask
        nodes, local = kept.unique(return_inverse=True)  # ok: host tensor
        return nodes.tolist(), local.view(2, -1), int(self.degree.max())  # ok: host tensors


class Conv(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.lin = nn.Linear(width, width)

    def forward(self, x, edges, count: int):
        src, dst = edges.unbind(0)  # ok: views
        message = self.lin(x).index_select(0, src)
        total = torch.zeros(count, x.shape[1], device=x.device).index_add_(0, dst, message)  # ok: size from the host
        degree = torch.zeros(count, device=x.device).scatter_add_(0, dst, torch.ones_like(dst, dtype=x.dtype))
        return (total / degree.clamp(min=1)[:, None])[: x.shape[0]]  # ok: host size


def train(layers, batches, opt):
    for x, edges, count in batches:
        x, edges = x.cuda(non_blocking=True), edges.cuda(non_blocking=True)
        for layer in layers:
            x = layer(x, edges, count)
        x.mean().backward()
        opt.step()
        opt.zero_grad()
