"""Batches through a ring of pinned buffers: the waits are for copies that have long ended."""
import torch


class Slot:
    def __init__(self, rows: int, width: int):
        self.host = torch.empty(rows, width, pin_memory=True)  # ok: allocated once
        self.copied = torch.cuda.Event()
        self.used = False


class Ring:
    def __init__(self, depth: int, rows: int, width: int):
        self.slots = [Slot(rows, width) for _ in range(depth)]  # ok: allocated once
        self.turn = 0

    def upload(self, array):
        slot = self.slots[self.turn % len(self.slots)]  # ok: Python numbers
        self.turn += 1
        if slot.used:  # ok: Python bool
            slot.copied.synchronize()  # ok: that copy was issued some steps ago
        slot.host.copy_(torch.from_numpy(array))  # ok: host to host
        rows = slot.host.to("cuda", non_blocking=True)  # ok: pinned
        slot.copied.record()
        slot.used = True
        return rows


def train(net, arrays, opt):
    ring = Ring(3, 256, 64)
    for batch in arrays.batches:
        net(ring.upload(batch)).mean().backward()
        opt.step()
        opt.zero_grad()
    torch.cuda.synchronize()  # ok: once, after the loop
