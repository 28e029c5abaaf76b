"""A cache that counts on the host and keeps a device counter for replayed graphs."""
import torch


class Cache:
    def __init__(self, limit: int, width: int):
        self.keys = torch.zeros(limit, width, device="cuda")
        self.filled = torch.zeros((), dtype=torch.long, device="cuda")
        self.length = 0
        self.slots = torch.arange(limit, device="cuda")

    def append(self, key):
        self.keys.index_copy_(0, self.filled.view(1), key)  # ok: a position on the device
        self.filled += 1
        self.length += 1

    def mask(self):
        return self.slots < self.filled  # ok: compared on the device

    def window(self):
        return self.keys[: self.length]  # ok: a host integer

    def room(self) -> int:
        return self.keys.size(0) - self.length  # ok: host numbers


def decode(model, token, limit: int):
    token = token.to("cuda")  # neutral: fresh input
    cache = Cache(limit, 64)
    produced = []
    for position in range(limit):
        key, token = model(token, cache.window(), cache.mask(), position)
        cache.append(key)
        produced.append(token)
        if not cache.room() or cache.length >= limit:  # ok: host numbers
            break
    return torch.cat(produced).tolist()  # ok: once, after the loop
