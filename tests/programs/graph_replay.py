"""Replaying a captured graph: inputs go in by device copies, one result comes out at the end."""
import torch


class Replayed:
    def __init__(self, net, rows: int, width: int):
        self.x = torch.zeros(rows, width, device="cuda")
        self.stage = torch.zeros(rows, width, pin_memory=True)  # ok: allocated once
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):
                net(self.x)
        side.synchronize()  # ok: before the capture, once
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.y = net(self.x)

    def __call__(self, fresh):
        self.x.copy_(fresh)  # ok: between device tensors
        self.graph.replay()
        return self.y.clone()


def run(net, x, steps: int):
    replayed = Replayed(net.cuda().eval(), 16, 64)
    x = x.cuda()  # neutral: fresh input
    for _ in range(steps):
        x = x + replayed(x) * 0.1
    return x.cpu()  # ok: the result
