"""A detection head that filters its boxes by boolean masks in forward."""
import torch
from torch import nn


class Head(nn.Module):
    def __init__(self, width: int, limit: int):
        super().__init__()
        self.score = nn.Linear(width, 1)
        self.box = nn.Linear(width, 4)
        self.limit = limit

    def forward(self, x):
        score = self.score(x).sigmoid().flatten()
        box = self.box(x).view(-1, 4)  # ok: Python size
        sure = score > 0.05
        some = box[sure]  # expect: mask-index
        value = torch.masked_select(score, sure)  # expect: mask-index
        if some.numel() == 0 or some.shape[0] < 2:  # ok: host metadata
            return box, score
        best = value.topk(min(self.limit, value.shape[0]))  # ok: a host integer
        chosen = some.index_select(0, best.indices)  # ok: gather
        chosen[:, 2:] += chosen[:, :2]  # ok: slices
        chosen[chosen < 0] *= 0.5  # expect: mask-index
        chosen[chosen > 1] = 1.0  # ok: a Python number becomes masked_fill
        return chosen, best.values


def watch(frames, net):
    head = Head(256, 100).cuda()  # neutral: a module moved
    for frame in frames:
        head(net(frame.cuda(non_blocking=True)))
