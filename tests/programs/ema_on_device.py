"""Averaged weights with host numbers for the decay and fused updates."""
import copy

import torch


class Average:
    def __init__(self, net, decay: float, every: int):
        self.net = copy.deepcopy(net).requires_grad_(False)
        self.decay, self.every, self.count = decay, every, 0

    @torch.no_grad()
    def update(self, net):
        self.count += 1
        if self.count % self.every:  # ok: Python numbers
            return
        decay = min(self.decay, (1 + self.count) / (10 + self.count))  # ok: Python numbers
        ours, theirs = list(self.net.parameters()), list(net.parameters())
        torch._foreach_lerp_(ours, theirs, 1 - decay)  # ok: a Python number
        for kept, fresh in zip(self.net.buffers(), net.buffers(), strict=True):
            if kept.dtype.is_floating_point and kept.numel() > 1:  # ok: host metadata
                kept.lerp_(fresh, 1 - decay)
            else:
                kept.copy_(fresh)  # ok: between device tensors


def train(net, loader, opt):
    net.cuda()  # neutral: a module moved
    average = Average(net, 0.999, 10)
    ramp = torch.linspace(0.0, 1.0, 1000).tolist()  # ok: host tensor, before the loop
    for step, x in enumerate(loader):
        loss = net(x.cuda(non_blocking=True)).mean() * ramp[min(step, 999)]  # ok: Python numbers
        loss.backward()
        opt.step()
        opt.zero_grad()
        average.update(net)
    return average.net
