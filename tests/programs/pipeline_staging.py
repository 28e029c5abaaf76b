"""A data pipeline that pins each batch anew and waits for its own copy stream."""
import torch


class Stager:
    def __init__(self):
        self.copies = torch.cuda.Stream()
        self.device = torch.device("cuda")

    def put(self, rows):
        staged = torch.tensor(rows, dtype=torch.float32).pin_memory()  # expect: pin-in-loop
        with torch.cuda.stream(self.copies):
            ready = staged.to(self.device, non_blocking=True)  # ok: pinned
        self.copies.synchronize()  # expect: explicit-sync
        scale = torch.as_tensor([1.0, 0.5], device=self.device)  # expect: host-upload
        return ready * scale

    def put_ordered(self, slot):
        with torch.cuda.stream(self.copies):
            ready = slot.to(self.device, non_blocking=True)
        torch.cuda.current_stream().wait_stream(self.copies)  # ok: the device waits, not the host
        return ready


def train(net, batches, opt):
    stager = Stager()
    for batch in batches:
        net(stager.put(batch.rows) + stager.put_ordered(batch.slot)).mean().backward()
        opt.step()
        opt.zero_grad()
