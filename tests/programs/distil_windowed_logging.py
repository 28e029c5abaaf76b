"""Distillation whose numbers are read once in a window."""
import logging

import torch
import torch.nn.functional as F

log = logging.getLogger(__name__)


class Window:
    def __init__(self, every: int):
        self.every = every
        self.total = torch.zeros((), dtype=torch.float64, device="cuda")
        self.bad = torch.zeros((), dtype=torch.bool, device="cuda")

    def add(self, loss):
        self.total += loss.detach().double()  # ok: stays on the device
        self.bad |= ~torch.isfinite(loss.detach())  # ok: combined on the device

    def show(self, step: int):
        if step % self.every:
            return
        if self.bad:  # ok: once in a window
            raise FloatingPointError(f"step {step}: {self.total.item()}")  # ok: the message of a raise
        log.info("step %d loss %.4f", step, self.total.item() / self.every)  # ok: once in a window
        self.total.zero_()


def fit(student, teacher, loader, opt):
    window = Window(100)
    for step, x in enumerate(loader, 1):
        x = x.cuda(non_blocking=True)
        with torch.no_grad():
            aim = teacher(x).softmax(-1)
        loss = F.kl_div(student(x).log_softmax(-1), aim, reduction="batchmean")
        loss.backward()
        opt.step()
        opt.zero_grad()
        window.add(loss)
        window.show(step)
        if log.isEnabledFor(logging.DEBUG):
            log.debug("exact %s", loss.item())  # ok: only while debugging
    return window.total.item()  # ok: after the loop
