"""A cache that keeps its lengths on the device and asks for them in each token step."""
import torch


class Cache:
    def __init__(self, rows: int, limit: int, width: int):
        self.keys = torch.zeros(rows, limit, width, device="cuda")
        self.lengths = torch.zeros(rows, dtype=torch.long, device="cuda")
        self.used = torch.zeros((), dtype=torch.long, device="cuda")
        self.rows = rows

    def append(self, key):
        positions = self.lengths.view(-1, 1, 1).expand(-1, 1, key.shape[-1])
        self.keys.scatter_(1, positions, key[:, None])  # ok: positions on the device
        self.lengths += 1
        self.used += 1  # neutral: the launch that counts, told where it is asked for

    def window(self):
        return self.keys[:, : self.used]  # expect: index-read

    def longest(self) -> int:
        return self.lengths.max().item()  # expect: item


def decode(model, token, cache: Cache, limit: int):
    token = token.to("cuda")  # neutral: fresh input
    for position in range(limit):
        key, token = model(token, cache.window(), cache.longest())
        cache.append(key)
        if position + 1 == cache.rows:  # ok: host integers
            token = token.roll(1, 0)
        row = cache.keys[position % cache.rows]  # ok: host integer
        token = token + row[:1, :1].sum().long()
    return token
