"""Planning where tables live: host tensors, lists and numbers before anything trains."""
import torch


def plan(sizes: list[int], devices: int):
    load = torch.zeros(devices)
    rows = torch.tensor(sizes)  # ok: host tensor
    order = rows.argsort(descending=True).tolist()  # ok: host tensor
    placed = {}
    for table in order:
        target = int(load.argmin())  # ok: host tensor
        placed[table] = target
        load[target] += rows[table]  # ok: host tensor
        if load[target] > rows.float().mean() * 4:  # ok: host tensor
            load[target] = float("inf")  # ok: host tensor
    return placed, [bool(v) for v in load.isfinite()]  # ok: host tensor


class Sharded(torch.nn.Module):
    def __init__(self, sizes: list[int], width: int, devices: int):
        super().__init__()
        self.where, self.free = plan(sizes, devices)
        self.tables = torch.nn.ModuleList(torch.nn.Embedding(n, width) for n in sizes)
        starts = torch.tensor([0, *sizes]).cumsum(0)
        self.starts = starts.tolist()  # ok: once, host tensor

    def forward(self, ids):
        parts = []
        for table, start in enumerate(self.starts[:-1]):  # ok: a Python list
            if self.free[self.where[table]] and start >= 0:  # ok: Python values
                parts.append(self.tables[table](ids[:, table] - start))  # ok: host integer
        return torch.stack(parts, 1).sum(1)


def train(model: Sharded, loader, opt):
    model.cuda()  # neutral: a module moved
    for ids in loader:
        model(ids.cuda(non_blocking=True)).mean().backward()
        opt.step()
        opt.zero_grad()
