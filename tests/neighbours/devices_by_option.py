"""Buffers on the host unless an option moves them, beside those that go where there is an accelerator."""
import torch


class Mailbox:
    """Read by the host at every step, and on the host unless a transport needs it elsewhere."""

    def __init__(self, size: int, transport: str):
        device = "cpu"
        if transport == "direct":
            device = "cuda"
        self.rows = torch.zeros(size, device=device)

    def read_step(self, i: int) -> float:
        return self.rows[i].item()  # ok: on the host by default


class State:
    def __init__(self, size: int):
        device = "cpu"
        if torch.cuda.is_available():
            device = "cuda"
        self.rows = torch.zeros(size, device=device)

    def read_step(self, i: int) -> float:
        return self.rows[i].item()  # expect: HL101
