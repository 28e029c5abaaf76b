"""A moving average of the weights, paced by a counter that lives on the device."""
import torch


class Average:
    def __init__(self, net, decay: float):
        self.shadow = [p.detach().clone() for p in net.parameters()]
        self.count = torch.zeros((), device="cuda")
        self.decay = decay
        self.updates = 0

    @torch.no_grad()
    def update(self, net):
        self.count += 1
        decay = min(self.decay, (1 + self.count) / (10 + self.count))  # expect: truth-test
        host_decay = min(self.decay, (1 + self.updates) / (10 + self.updates))  # ok: Python numbers
        self.updates += 1
        for kept, p in zip(self.shadow, net.parameters(), strict=True):
            if kept.shape == p.shape:  # ok: shapes
                kept.lerp_(p, 1 - decay)  # ok: lerp takes a tensor
            kept.mul_(host_decay)  # ok: Python number
            if torch.equal(kept, p):  # expect: truth-test
                continue


def train(net, loader, opt):
    net.cuda()  # neutral: a module moved
    average = Average(net, 0.999)
    for x in loader:
        net(x.cuda(non_blocking=True)).mean().backward()
        opt.step()
        opt.zero_grad()
        average.update(net)
